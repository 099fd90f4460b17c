//! AVX2: eight elements at a time; the maximum, the rounding and the integer sums are exact in any
//! order.

use super::block_scales;
use super::tile::{Place, SUM_ELEMENTS};
use std::arch::x86_64::*;

/// As [`reference::quantize_block`](super::reference::quantize_block); quads are even-odd pairs.
#[target_feature(enable = "avx2")]
pub(super) fn quantize_block(x: &[f32], limit: f32, place: Place<'_>) -> f32 {
    let (x, _) = x.as_chunks::<16>();
    let mut integers = [_mm256_setzero_si256(); 16];
    let integers = &mut integers[..x.len()];
    let magnitude = _mm256_set1_epi32(0x7FFF_FFFF);
    let mut amax = _mm256_setzero_si256();
    for v in x {
        for half in 0..2 {
            // SAFETY: `v` is 16 f32; the load reads eight at 0 or 8.
            let bits = unsafe { _mm256_loadu_si256(v.as_ptr().add(8 * half).cast()) };
            amax = _mm256_max_epu32(amax, _mm256_and_si256(bits, magnitude));
        }
    }
    let mut lanes = [0_u32; 8];
    // SAFETY: `lanes` is 32 bytes.
    unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), amax) };
    let amax = f32::from_bits(lanes.into_iter().max().unwrap_or(0));

    let scale = match block_scales(amax, limit) {
        Ok((scale, inverse)) => {
            let inverse = _mm256_set1_ps(inverse);
            let (high, low) = (_mm256_set1_ps(limit), _mm256_set1_ps(-limit));
            for (v, a) in x.iter().zip(&mut *integers) {
                let round = |half: usize| {
                    // SAFETY: `v` is 16 f32; the load reads eight at 0 or 8.
                    let v = unsafe { _mm256_loadu_ps(v.as_ptr().add(8 * half)) };
                    let rounded = _mm256_round_ps::<NEAREST>(_mm256_mul_ps(v, inverse));
                    _mm256_cvtps_epi32(_mm256_max_ps(_mm256_min_ps(rounded, high), low))
                };
                // Packing works per 128-bit lane; the permute puts the four groups back in order.
                let packed = _mm256_packs_epi32(round(0), round(1));
                *a = _mm256_permute4x64_epi64::<0b11_01_10_00>(packed);
            }
            scale
        }
        Err(scale) => scale,
    };
    put_sums(integers, place.width, place.sums);
    put_pairs(integers, place.width, place.words);
    scale
}

const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

/// Sums of each 16 integers, every `width`-th entry of `sums`.
#[target_feature(enable = "avx2")]
pub(super) fn put_sums(integers: &[__m256i], width: usize, sums: &mut [i32]) {
    const { assert!(SUM_ELEMENTS == 16) };
    let ones = _mm256_set1_epi16(1);
    let mut sums = sums.iter_mut().step_by(width);
    for four in integers.chunks(4) {
        let pair = |i: usize| match four.get(i) {
            Some(&a) => _mm256_madd_epi16(a, ones),
            None => _mm256_setzero_si256(),
        };
        let lanes = _mm256_hadd_epi32(
            _mm256_hadd_epi32(pair(0), pair(1)),
            _mm256_hadd_epi32(pair(2), pair(3)),
        );
        let total = _mm_add_epi32(
            _mm256_castsi256_si128(lanes),
            _mm256_extracti128_si256::<1>(lanes),
        );
        let mut totals = [0_i32; 4];
        // SAFETY: `totals` is 16 bytes.
        unsafe { _mm_storeu_si128(totals.as_mut_ptr().cast(), total) };
        for (total, sum) in totals.into_iter().take(four.len()).zip(&mut sums) {
            *sum = total;
        }
    }
}

/// Quads as elements (0, 2), (1, 3), every `width`-th pair of words.
#[target_feature(enable = "avx2")]
fn put_pairs(integers: &[__m256i], width: usize, words: &mut [u32]) {
    let order = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15,
    ));
    let mut quads = words.chunks_mut(2 * width);
    for &a in integers {
        let mut pairs = [0_u32; 8];
        // SAFETY: `pairs` is 32 bytes.
        unsafe {
            _mm256_storeu_si256(pairs.as_mut_ptr().cast(), _mm256_shuffle_epi8(a, order));
        }
        for (pair, quad) in pairs.as_chunks::<2>().0.iter().zip(&mut quads) {
            quad[..2].copy_from_slice(pair);
        }
    }
}
