//! One f16 per 256 elements times a signed byte per 16 (Q6_K). Record: `d`, then 16 scales.

use super::{ScaleLayout, get_half, half_at, put_half};
#[cfg(target_arch = "x86_64")]
use super::{halves256, halves512, zeros256, zeros512};
use crate::matmul::quants::PANEL_ROWS;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// `w_j = d·sc_j`, exact in f32; no offset.
pub(crate) struct SuperScaleSigned;

const SUB_BLOCKS: usize = 16;
/// Section: `d` of 16 rows (padded to 64 bytes), then 16 vectors of scales.
const SCALES: usize = 64;

impl ScaleLayout for SuperScaleSigned {
    const SUB_BLOCK: usize = 16;
    const HAS_OFFSET: bool = false;
    const RECORD_BYTES: usize = 2 + SUB_BLOCKS;

    fn section_bytes(_num_blocks: usize) -> usize {
        SCALES + SUB_BLOCKS * PANEL_ROWS
    }

    fn put(section: &mut [u8], _block: usize, row: usize, record: &[u8]) {
        put_half(section, 0, row, &record[..2]);
        for j in 0..SUB_BLOCKS {
            section[SCALES + PANEL_ROWS * j + row] = record[2 + j];
        }
    }

    fn record(section: &[u8], _block: usize, row: usize, record: &mut [u8]) {
        get_half(section, 0, row, &mut record[..2]);
        for j in 0..SUB_BLOCKS {
            record[2 + j] = section[SCALES + PANEL_ROWS * j + row];
        }
    }

    fn weight(section: &[u8], j: usize, row: usize) -> f32 {
        let scale = section[SCALES + PANEL_ROWS * j + row].cast_signed();
        half_at(section, 0, row) * f32::from(scale)
    }

    fn offset(_section: &[u8], _j: usize, _row: usize) -> f32 {
        0.0
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn weight512(section: *const u8, j: usize) -> __m512 {
        // SAFETY: the caller vouches for the CPU and the section; j < 16.
        unsafe {
            let scales = _mm_loadu_si128(section.add(SCALES + PANEL_ROWS * j).cast());
            let scales = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(scales));
            _mm512_mul_ps(halves512(section), scales)
        }
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
        // SAFETY: the caller vouches for the CPU and the section; j < 16, half < 2.
        unsafe {
            let scales = _mm_loadl_epi64(section.add(SCALES + PANEL_ROWS * j + 8 * half).cast());
            let scales = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(scales));
            _mm256_mul_ps(halves256(section.add(16 * half)), scales)
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn offset256(_section: *const u8, _j: usize, _half: usize) -> __m256 {
        // SAFETY: the caller vouches for the CPU.
        unsafe { zeros256() }
    }
}
