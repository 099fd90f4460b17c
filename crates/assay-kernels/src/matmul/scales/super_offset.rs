//! Two f16 per 256 elements, each times an unsigned integer of up to 8 bits per 32 (Q4_K, Q5_K) or
//! per 16 (Q2_K). Record: `d`, `dmin`, then the scales and the minima, a byte each.

use super::{ScaleLayout, get_half, half_at, put_half};
#[cfg(target_arch = "x86_64")]
use super::{halves256, halves512};
use crate::matmul::quants::PANEL_ROWS;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// `w_j = d·sc_j`, `n_j = −(dmin·m_j)`; both products are exact in f32.
pub(crate) struct SuperScaleOffset<const SUB_BLOCK: usize>;

/// Section: `d` and `dmin` of 16 rows, then a vector of scales per sub-block, then one of minima.
const DMIN: usize = 2 * PANEL_ROWS;
const SCALES: usize = 2 * DMIN;

impl<const SUB_BLOCK: usize> SuperScaleOffset<SUB_BLOCK> {
    const SUB_BLOCKS: usize = 256 / SUB_BLOCK;
    const MINIMA: usize = SCALES + Self::SUB_BLOCKS * PANEL_ROWS;
}

impl<const SUB_BLOCK: usize> ScaleLayout for SuperScaleOffset<SUB_BLOCK> {
    const SUB_BLOCK: usize = SUB_BLOCK;
    const HAS_OFFSET: bool = true;
    const RECORD_BYTES: usize = 4 + 2 * Self::SUB_BLOCKS;

    fn section_bytes(_num_blocks: usize) -> usize {
        Self::MINIMA + Self::SUB_BLOCKS * PANEL_ROWS
    }

    fn put(section: &mut [u8], _block: usize, row: usize, record: &[u8]) {
        put_half(section, 0, row, &record[..2]);
        put_half(section, DMIN, row, &record[2..4]);
        for j in 0..Self::SUB_BLOCKS {
            section[SCALES + PANEL_ROWS * j + row] = record[4 + j];
            section[Self::MINIMA + PANEL_ROWS * j + row] = record[4 + Self::SUB_BLOCKS + j];
        }
    }

    fn record(section: &[u8], _block: usize, row: usize, record: &mut [u8]) {
        get_half(section, 0, row, &mut record[..2]);
        get_half(section, DMIN, row, &mut record[2..4]);
        for j in 0..Self::SUB_BLOCKS {
            record[4 + j] = section[SCALES + PANEL_ROWS * j + row];
            record[4 + Self::SUB_BLOCKS + j] = section[Self::MINIMA + PANEL_ROWS * j + row];
        }
    }

    fn weight(section: &[u8], j: usize, row: usize) -> f32 {
        half_at(section, 0, row) * f32::from(section[SCALES + PANEL_ROWS * j + row])
    }

    fn offset(section: &[u8], j: usize, row: usize) -> f32 {
        -(half_at(section, DMIN, row) * f32::from(section[Self::MINIMA + PANEL_ROWS * j + row]))
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn weight512(section: *const u8, j: usize) -> __m512 {
        // SAFETY: the caller vouches for the CPU and the section; j < 256 / SUB_BLOCK.
        unsafe {
            let scales = _mm_loadu_si128(section.add(SCALES + PANEL_ROWS * j).cast());
            let scales = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(scales));
            _mm512_mul_ps(halves512(section), scales)
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn offset512(section: *const u8, j: usize) -> __m512 {
        // SAFETY: the caller vouches for the CPU and the section; j < 256 / SUB_BLOCK.
        unsafe {
            let minima = _mm_loadu_si128(section.add(Self::MINIMA + PANEL_ROWS * j).cast());
            let minima = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(minima));
            let product = _mm512_mul_ps(halves512(section.add(DMIN)), minima);
            _mm512_xor_ps(product, _mm512_set1_ps(-0.0))
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn weight256(section: *const u8, j: usize, half: usize) -> __m256 {
        // SAFETY: the caller vouches for the CPU and the section; j < 256 / SUB_BLOCK, half < 2.
        unsafe {
            let scales = _mm_loadl_epi64(section.add(SCALES + PANEL_ROWS * j + 8 * half).cast());
            let scales = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(scales));
            _mm256_mul_ps(halves256(section.add(16 * half)), scales)
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn offset256(section: *const u8, j: usize, half: usize) -> __m256 {
        // SAFETY: the caller vouches for the CPU and the section; j < 256 / SUB_BLOCK, half < 2.
        unsafe {
            let minima =
                _mm_loadl_epi64(section.add(Self::MINIMA + PANEL_ROWS * j + 8 * half).cast());
            let minima = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(minima));
            let product = _mm256_mul_ps(halves256(section.add(DMIN + 16 * half)), minima);
            _mm256_xor_ps(product, _mm256_set1_ps(-0.0))
        }
    }
}
