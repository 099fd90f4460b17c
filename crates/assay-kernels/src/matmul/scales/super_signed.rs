//! One f16 per 256 elements times a signed byte per 16 or 32, over a power of two (Q3_K, Q6_K, IQ1 to
//! IQ4_XS). Record: `d`, then the scales.

use super::{ScaleLayout, get_half, half_at, put_half};
#[cfg(target_arch = "x86_64")]
use super::{halves256, halves512, zeros256, zeros512};
use crate::matmul::quants::PANEL_ROWS;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// `w_j = (d / DIVISOR)·sc_j` per `SUB_BLOCK` elements; no offset.
///
/// Both steps are exact in f32: `DIVISOR` is a power of two up to 8, no f16 is below 2^-24, and 11
/// bits times 7 have 18.
pub(crate) struct SuperScaleSigned<const SUB_BLOCK: usize, const DIVISOR: u8>;

/// Section: `d` of 16 rows (padded to 64 bytes), then a vector of scales per sub-block.
const SCALES: usize = 64;

impl<const SUB_BLOCK: usize, const DIVISOR: u8> SuperScaleSigned<SUB_BLOCK, DIVISOR> {
    const SUB_BLOCKS: usize = 256 / SUB_BLOCK;
    /// Exact.
    const FACTOR: f32 = 1.0 / DIVISOR as f32;
}

impl<const SUB_BLOCK: usize, const DIVISOR: u8> ScaleLayout
    for SuperScaleSigned<SUB_BLOCK, DIVISOR>
{
    const SUB_BLOCK: usize = SUB_BLOCK;
    const HAS_OFFSET: bool = false;
    const RECORD_BYTES: usize = 2 + Self::SUB_BLOCKS;

    fn section_bytes(_num_blocks: usize) -> usize {
        SCALES + Self::SUB_BLOCKS * PANEL_ROWS
    }

    fn put(section: &mut [u8], _block: usize, row: usize, record: &[u8]) {
        put_half(section, 0, row, &record[..2]);
        for j in 0..Self::SUB_BLOCKS {
            section[SCALES + PANEL_ROWS * j + row] = record[2 + j];
        }
    }

    fn record(section: &[u8], _block: usize, row: usize, record: &mut [u8]) {
        get_half(section, 0, row, &mut record[..2]);
        for j in 0..Self::SUB_BLOCKS {
            record[2 + j] = section[SCALES + PANEL_ROWS * j + row];
        }
    }

    fn weight(section: &[u8], j: usize, row: usize) -> f32 {
        let scale = section[SCALES + PANEL_ROWS * j + row].cast_signed();
        half_at(section, 0, row) * Self::FACTOR * f32::from(scale)
    }

    fn offset(_section: &[u8], _j: usize, _row: usize) -> f32 {
        0.0
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn weight512(section: *const u8, j: usize) -> __m512 {
        // SAFETY: the caller vouches for the CPU and the section; j < 256 / SUB_BLOCK.
        unsafe {
            let scales = _mm_loadu_si128(section.add(SCALES + PANEL_ROWS * j).cast());
            let scales = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(scales));
            let mut d = halves512(section);
            if DIVISOR != 1 {
                d = _mm512_mul_ps(d, _mm512_set1_ps(Self::FACTOR));
            }
            _mm512_mul_ps(d, scales)
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
        // SAFETY: the caller vouches for the CPU and the section; j < 256 / SUB_BLOCK, half < 2.
        unsafe {
            let scales = _mm_loadl_epi64(section.add(SCALES + PANEL_ROWS * j + 8 * half).cast());
            let scales = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(scales));
            let mut d = halves256(section.add(16 * half));
            if DIVISOR != 1 {
                d = _mm256_mul_ps(d, _mm256_set1_ps(Self::FACTOR));
            }
            _mm256_mul_ps(d, scales)
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn offset256(_section: *const u8, _j: usize, _half: usize) -> __m256 {
        // SAFETY: the caller vouches for the CPU.
        unsafe { zeros256() }
    }
}
