//! How scales lie in a packed panel: a section in front of the quants of each 256-block, one
//! vector of 16 rows per scale, kept in the source's own compact form (f16, small integers).
//!
//! The values read back are the contract's exact `w_j` and `n_j`. Knows no quants.

mod half_offset;
mod half_scale;
mod power_scale;
mod super_offset;
mod super_signed;

pub(crate) use half_offset::HalfScaleOffset;
pub(crate) use half_scale::HalfScale;
pub(crate) use power_scale::PowerScale;
pub(crate) use super_offset::SuperScaleOffset;
pub(crate) use super_signed::SuperScaleSigned;

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// A storage class of scales. Sub-block indices `j` count within one 256-block.
pub(crate) trait ScaleLayout: Send + Sync + 'static {
    /// Elements that share one `w_j`: 32 or 16.
    const SUB_BLOCK: usize;
    /// Whether every sub-block has an offset `n_j`.
    const HAS_OFFSET: bool;
    /// Bytes of the scales of one row and one source block, in the order of the layout's record.
    const RECORD_BYTES: usize;

    /// Bytes of the section in front of `num_blocks` (1..=8) 32-blocks; a multiple of 64.
    fn section_bytes(num_blocks: usize) -> usize;

    /// Stores the record of source block `block` (within the 256-block) of `row`.
    fn put(section: &mut [u8], block: usize, row: usize, record: &[u8]);

    /// Reads back what [`ScaleLayout::put`] stored.
    fn record(section: &[u8], block: usize, row: usize, record: &mut [u8]);

    /// `w_j` of `row`.
    fn weight(section: &[u8], j: usize, row: usize) -> f32;

    /// `n_j` of `row`; zero where the layout has none.
    fn offset(section: &[u8], j: usize, row: usize) -> f32;

    /// `w_j` of all 16 rows.
    ///
    /// # Safety
    /// The CPU has AVX-512 F; `section` points to a section that holds sub-block `j`.
    #[cfg(target_arch = "x86_64")]
    unsafe fn weight512(section: *const u8, j: usize) -> __m512;

    /// `n_j` of all 16 rows; zero where the layout has none.
    ///
    /// # Safety
    /// As [`ScaleLayout::weight512`].
    #[cfg(target_arch = "x86_64")]
    unsafe fn offset512(section: *const u8, j: usize) -> __m512;

    /// `w_j` of rows `8·half..8·half + 8`.
    ///
    /// # Safety
    /// The CPU has AVX2 and F16C; `section` as in [`ScaleLayout::weight512`]; `half` is 0 or 1.
    #[cfg(target_arch = "x86_64")]
    unsafe fn weight256(section: *const u8, j: usize, half: usize) -> __m256;

    /// `n_j` of rows `8·half..8·half + 8`; zero where the layout has none.
    ///
    /// # Safety
    /// As [`ScaleLayout::weight256`].
    #[cfg(target_arch = "x86_64")]
    unsafe fn offset256(section: *const u8, j: usize, half: usize) -> __m256;
}

/// The f16 of `row` in the vector at byte `at`, exactly.
#[inline(always)]
fn half_at(section: &[u8], at: usize, row: usize) -> f32 {
    let at = at + 2 * row;
    half::f16::from_le_bytes([section[at], section[at + 1]]).to_f32()
}

/// Stores an f16's two bytes for `row` in the vector at byte `at`.
fn put_half(section: &mut [u8], at: usize, row: usize, bytes: &[u8]) {
    let at = at + 2 * row;
    section[at..at + 2].copy_from_slice(bytes);
}

/// Reads an f16's two bytes of `row` from the vector at byte `at`.
fn get_half(section: &[u8], at: usize, row: usize, bytes: &mut [u8]) {
    let at = at + 2 * row;
    bytes.copy_from_slice(&section[at..at + 2]);
}

/// 16 f16 at `at`, exactly as f32.
///
/// # Safety
/// The CPU has AVX-512 F; 32 bytes at `at` are readable.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn halves512(at: *const u8) -> __m512 {
    // SAFETY: the caller's contract is this function's.
    unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(at.cast())) }
}

/// 8 f16 at `at`, exactly as f32.
///
/// # Safety
/// The CPU has F16C; 16 bytes at `at` are readable.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn halves256(at: *const u8) -> __m256 {
    // SAFETY: the caller's contract is this function's.
    unsafe { _mm256_cvtph_ps(_mm_loadu_si128(at.cast())) }
}

/// A vector of zeros.
///
/// # Safety
/// The CPU has AVX-512 F.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn zeros512() -> __m512 {
    // SAFETY: the caller's contract is this function's.
    unsafe { _mm512_setzero_ps() }
}

/// A vector of zeros.
///
/// # Safety
/// The CPU has AVX.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn zeros256() -> __m256 {
    // SAFETY: the caller's contract is this function's.
    unsafe { _mm256_setzero_ps() }
}
