//! One f16 scale and one f16 offset per 32 elements (Q4_1, Q5_1). Record: `d`, `m`.

use super::{ScaleLayout, get_half, half_at, put_half};
#[cfg(target_arch = "x86_64")]
use super::{halves256, halves512};
use crate::matmul::quants::PANEL_ROWS;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{__m256, __m512};

/// `w_j = d`, `n_j = m`.
pub(crate) struct HalfScaleOffset;

/// Bytes of one vector of 16 f16.
const VECTOR: usize = 2 * PANEL_ROWS;
/// Bytes from one 32-block to the next: `d`, then `m`.
const STRIDE: usize = 2 * VECTOR;

impl ScaleLayout for HalfScaleOffset {
    const SUB_BLOCK: usize = 32;
    const HAS_OFFSET: bool = true;
    const RECORD_BYTES: usize = 4;

    fn section_bytes(num_blocks: usize) -> usize {
        STRIDE * num_blocks
    }

    fn put(section: &mut [u8], block: usize, row: usize, record: &[u8]) {
        put_half(section, STRIDE * block, row, &record[..2]);
        put_half(section, STRIDE * block + VECTOR, row, &record[2..4]);
    }

    fn record(section: &[u8], block: usize, row: usize, record: &mut [u8]) {
        get_half(section, STRIDE * block, row, &mut record[..2]);
        get_half(section, STRIDE * block + VECTOR, row, &mut record[2..4]);
    }

    fn weight(section: &[u8], j: usize, row: usize) -> f32 {
        half_at(section, STRIDE * j, row)
    }

    fn offset(section: &[u8], j: usize, row: usize) -> f32 {
        half_at(section, STRIDE * j + VECTOR, row)
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn weight512(section: *const u8, j: usize) -> __m512 {
        // SAFETY: the caller vouches for the CPU and that the section holds block `j`.
        unsafe { halves512(section.add(STRIDE * j)) }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn offset512(section: *const u8, j: usize) -> __m512 {
        // SAFETY: the caller vouches for the CPU and that the section holds block `j`.
        unsafe { halves512(section.add(STRIDE * j + VECTOR)) }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn weight256(section: *const u8, j: usize, half: usize) -> __m256 {
        // SAFETY: the caller vouches for the CPU and that the section holds block `j`; half < 2.
        unsafe { halves256(section.add(STRIDE * j + 16 * half)) }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn offset256(section: *const u8, j: usize, half: usize) -> __m256 {
        // SAFETY: the caller vouches for the CPU and that the section holds block `j`; half < 2.
        unsafe { halves256(section.add(STRIDE * j + VECTOR + 16 * half)) }
    }
}
