//! One f16 per 32 elements (Q4_0, Q5_0, Q8_0). Record: `d`.

use super::{ScaleLayout, get_half, half_at, put_half};
#[cfg(target_arch = "x86_64")]
use super::{halves256, halves512, zeros256, zeros512};
use crate::matmul::quants::PANEL_ROWS;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{__m256, __m512};

/// `w_j = d`, no offset.
pub(crate) struct HalfScale;

/// Bytes of one vector of 16 f16.
const STRIDE: usize = 2 * PANEL_ROWS;

impl ScaleLayout for HalfScale {
    const SUB_BLOCK: usize = 32;
    const HAS_OFFSET: bool = false;
    const RECORD_BYTES: usize = 2;

    fn section_bytes(num_blocks: usize) -> usize {
        (STRIDE * num_blocks).next_multiple_of(64)
    }

    fn put(section: &mut [u8], block: usize, row: usize, record: &[u8]) {
        put_half(section, STRIDE * block, row, record);
    }

    fn record(section: &[u8], block: usize, row: usize, record: &mut [u8]) {
        get_half(section, STRIDE * block, row, record);
    }

    fn weight(section: &[u8], j: usize, row: usize) -> f32 {
        half_at(section, STRIDE * j, row)
    }

    fn offset(_section: &[u8], _j: usize, _row: usize) -> f32 {
        0.0
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn weight512(section: *const u8, j: usize) -> __m512 {
        // SAFETY: the caller vouches for the CPU and that the section holds vector `j`.
        unsafe { halves512(section.add(STRIDE * j)) }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn offset512(_section: *const u8, _j: usize) -> __m512 {
        // SAFETY: the caller vouches for the CPU.
        unsafe { zeros512() }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn weight256(section: *const u8, j: usize, half: usize) -> __m256 {
        // SAFETY: the caller vouches for the CPU and that the section holds vector `j`; half < 2.
        unsafe { halves256(section.add(STRIDE * j + 16 * half)) }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn offset256(_section: *const u8, _j: usize, _half: usize) -> __m256 {
        // SAFETY: the caller vouches for the CPU.
        unsafe { zeros256() }
    }
}
