//! AVX-512: sixteen elements at a time; the maximum, the rounding and the integer sums are exact in
//! any order.

use super::block_scales;
use super::tile::{Place, QuadWords};
use std::arch::x86_64::*;

/// As [`reference::quantize_block`](super::reference::quantize_block); quads are bytes, split or not.
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vl")]
pub(super) fn quantize_block(x: &[f32], limit: f32, place: Place<'_>) -> f32 {
    let (x, _) = x.as_chunks::<16>();
    let mut integers = [_mm256_setzero_si256(); 16];
    let integers = &mut integers[..x.len()];
    let magnitude = _mm512_set1_epi32(0x7FFF_FFFF);
    let mut amax = _mm512_setzero_si512();
    for v in x {
        // SAFETY: `v` is 16 f32 = 64 bytes.
        let bits = unsafe { _mm512_loadu_si512(v.as_ptr().cast()) };
        amax = _mm512_max_epu32(amax, _mm512_and_si512(bits, magnitude));
    }
    let amax = f32::from_bits(_mm512_reduce_max_epu32(amax));

    let scale = match block_scales(amax, limit) {
        Ok((scale, inverse)) => {
            let inverse = _mm512_set1_ps(inverse);
            let (high, low) = (_mm512_set1_ps(limit), _mm512_set1_ps(-limit));
            for (v, a) in x.iter().zip(&mut *integers) {
                // SAFETY: `v` is 16 f32 = 64 bytes.
                let v = unsafe { _mm512_loadu_ps(v.as_ptr()) };
                let rounded = _mm512_roundscale_ps::<NEAREST>(_mm512_mul_ps(v, inverse));
                let clamped = _mm512_max_ps(_mm512_min_ps(rounded, high), low);
                *a = _mm512_cvtepi32_epi16(_mm512_cvtps_epi32(clamped));
            }
            scale
        }
        Err(scale) => scale,
    };
    super::avx2::put_sums(integers, place.width, place.sums);
    match place.quad {
        QuadWords::SplitBytes => put_split(integers, place.width, place.words),
        QuadWords::Bytes => put_bytes(integers, place.width, place.words),
        QuadWords::EvenOddPairs => unreachable!("the AVX-512 kernels multiply bytes"),
    }
    scale
}

const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

/// Quads as their four `hi` and four `lo` bytes, every `width`-th pair of words.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn put_split(integers: &[__m256i], width: usize, words: &mut [u32]) {
    let half = _mm256_set1_epi16(128);
    let mut quads = words.chunks_mut(2 * width);
    for &a in integers {
        // a + 128 cannot overflow: |a| ≤ 32,512.
        let hi = _mm256_cvtepi16_epi8(_mm256_srai_epi16::<8>(_mm256_add_epi16(a, half)));
        let lo = _mm256_cvtepi16_epi8(a);
        let mut pairs = [0_u32; 8];
        // SAFETY: `pairs` is 32 bytes.
        unsafe {
            let out = pairs.as_mut_ptr().cast::<__m128i>();
            _mm_storeu_si128(out, _mm_unpacklo_epi32(hi, lo));
            _mm_storeu_si128(out.add(1), _mm_unpackhi_epi32(hi, lo));
        }
        for (pair, quad) in pairs.as_chunks::<2>().0.iter().zip(&mut quads) {
            quad[..2].copy_from_slice(pair);
        }
    }
}

/// Quads as four bytes, every `width`-th word.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn put_bytes(integers: &[__m256i], width: usize, words: &mut [u32]) {
    let mut words = words.iter_mut().step_by(width);
    for &a in integers {
        let mut quads = [0_u32; 4];
        // SAFETY: `quads` is 16 bytes.
        unsafe { _mm_storeu_si128(quads.as_mut_ptr().cast(), _mm256_cvtepi16_epi8(a)) };
        for (quad, word) in quads.into_iter().zip(&mut words) {
            *word = quad;
        }
    }
}
