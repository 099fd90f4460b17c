//! One power of two per 32 elements, as an exponent byte (MXFP4). Record: the byte.

use super::ScaleLayout;
#[cfg(target_arch = "x86_64")]
use super::{zeros256, zeros512};
use crate::matmul::quants::PANEL_ROWS;
use assay_formats::quant::mxfp4_scale;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// `w_j = 2^(e_j − 128)`, exact; subnormal for the exponents 0 and 1. No offset.
pub(crate) struct PowerScale;

/// The bits of 2^-128; shifted left by the exponent they are right for 0 and 1.
#[cfg(target_arch = "x86_64")]
const LEAST: i32 = 0x0020_0000;

impl ScaleLayout for PowerScale {
    const SUB_BLOCK: usize = 32;
    const HAS_OFFSET: bool = false;
    const RECORD_BYTES: usize = 1;

    fn section_bytes(num_blocks: usize) -> usize {
        (PANEL_ROWS * num_blocks).next_multiple_of(64)
    }

    fn put(section: &mut [u8], block: usize, row: usize, record: &[u8]) {
        section[PANEL_ROWS * block + row] = record[0];
    }

    fn record(section: &[u8], block: usize, row: usize, record: &mut [u8]) {
        record[0] = section[PANEL_ROWS * block + row];
    }

    fn weight(section: &[u8], j: usize, row: usize) -> f32 {
        mxfp4_scale(section[PANEL_ROWS * j + row])
    }

    fn offset(_section: &[u8], _j: usize, _row: usize) -> f32 {
        0.0
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn weight512(section: *const u8, j: usize) -> __m512 {
        // SAFETY: the caller vouches for the CPU and that the section holds vector `j`.
        unsafe {
            let e = _mm_loadu_si128(section.add(PANEL_ROWS * j).cast());
            let e = _mm512_cvtepu8_epi32(e);
            let normal = _mm512_slli_epi32::<23>(_mm512_sub_epi32(e, _mm512_set1_epi32(1)));
            let subnormal = _mm512_cmplt_epi32_mask(e, _mm512_set1_epi32(2));
            let bits = _mm512_mask_sllv_epi32(normal, subnormal, _mm512_set1_epi32(LEAST), e);
            _mm512_castsi512_ps(bits)
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
        // SAFETY: the caller vouches for the CPU and that the section holds vector `j`; half < 2.
        unsafe {
            let e = _mm_loadl_epi64(section.add(PANEL_ROWS * j + 8 * half).cast());
            let e = _mm256_cvtepu8_epi32(e);
            let normal = _mm256_slli_epi32::<23>(_mm256_sub_epi32(e, _mm256_set1_epi32(1)));
            let least = _mm256_sllv_epi32(_mm256_set1_epi32(LEAST), e);
            let subnormal = _mm256_cmpgt_epi32(_mm256_set1_epi32(2), e);
            _mm256_castsi256_ps(_mm256_blendv_epi8(normal, least, subnormal))
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn offset256(_section: *const u8, _j: usize, _half: usize) -> __m256 {
        // SAFETY: the caller vouches for the CPU.
        unsafe { zeros256() }
    }
}
