//! Float product on AVX2: two registers are one group; tiles of groups by tokens hide the chain's latency.

use super::Product;
use super::matrix::{FloatMatrix, GROUP_ROWS, Groups};
use crate::numerics::MATMUL_BLOCK;
use crate::x86::avx2::{load, store};
use std::arch::x86_64::*;
use std::ops::Range;

/// Eight rows of a group.
const HALF: usize = GROUP_ROWS / 2;

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn multiply(matrix: &FloatMatrix, product: &Product<'_>, groups: Range<usize>) {
    match &matrix.groups {
        Groups::F32(packed) => tiles(packed, product, groups, |w| load(w)),
        Groups::F16(packed) => tiles(packed, product, groups, |w| _mm256_cvtph_ps(load_u16(w))),
        Groups::BF16(packed) => tiles(packed, product, groups, |w| {
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(load_u16(w))))
        }),
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_u16(values: &[u16; HALF]) -> __m128i {
    // SAFETY: the array holds the 16 bytes read; the load needs no alignment.
    unsafe { _mm_loadu_si128(values.as_ptr().cast()) }
}

/// Covers groups × tokens with tiles of 1 × 4; left-over tokens with 4 × 1, and the last groups with 1 × 1.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn tiles<E>(
    packed: &[[E; GROUP_ROWS]],
    product: &Product<'_>,
    groups: Range<usize>,
    load_weights: impl Fn(&[E; HALF]) -> __m256 + Copy,
) {
    let mut token = 0;
    while token + 4 <= product.num_tokens {
        for group in groups.clone() {
            tile::<E, 1, 4>(packed, product, group, token, load_weights);
        }
        token += 4;
    }
    for token in token..product.num_tokens {
        let mut group = groups.start;
        while group + 4 <= groups.end {
            tile::<E, 4, 1>(packed, product, group, token, load_weights);
            group += 4;
        }
        for group in group..groups.end {
            tile::<E, 1, 1>(packed, product, group, token, load_weights);
        }
    }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn tile<E, const G: usize, const T: usize>(
    packed: &[[E; GROUP_ROWS]],
    product: &Product<'_>,
    group: usize,
    token: usize,
    load_weights: impl Fn(&[E; HALF]) -> __m256,
) {
    let k = product.num_cols;
    let weights: [&[[E; GROUP_ROWS]]; G] = std::array::from_fn(|g| &packed[(group + g) * k..][..k]);
    let x: [&[f32]; T] = std::array::from_fn(|t| product.x_row(token + t));
    let mut sums = [[[_mm256_setzero_ps(); 2]; G]; T];
    let mut start = 0;
    while start < k {
        let end = k.min(start + MATMUL_BLOCK);
        let mut acc = [[[_mm256_setzero_ps(); 2]; G]; T];
        for i in start..end {
            let mut xs = [_mm256_setzero_ps(); T];
            for (broadcast, x) in xs.iter_mut().zip(&x) {
                // SAFETY: i < k, the length of every slice in `x`.
                *broadcast = _mm256_set1_ps(unsafe { *x.get_unchecked(i) });
            }
            for (g, weights) in weights.iter().enumerate() {
                // SAFETY: i < k, the length of every slice in `weights`.
                let halves = unsafe { weights.get_unchecked(i) }.as_chunks::<HALF>().0;
                for (h, half) in halves.iter().enumerate() {
                    let w = load_weights(half);
                    for (acc, &x) in acc.iter_mut().zip(&xs) {
                        acc[g][h] = _mm256_fmadd_ps(w, x, acc[g][h]);
                    }
                }
            }
        }
        for (sums, acc) in sums.iter_mut().flatten().zip(acc.iter().flatten()) {
            for (sum, &acc) in sums.iter_mut().zip(acc) {
                *sum = _mm256_add_ps(*sum, acc);
            }
        }
        start = end;
    }
    for (t, sums) in sums.iter().enumerate() {
        for (g, halves) in sums.iter().enumerate() {
            let mut lanes = [0.0; GROUP_ROWS];
            for (lanes, &sum) in lanes.as_chunks_mut::<HALF>().0.iter_mut().zip(halves) {
                store(lanes, sum);
            }
            product.finish(token + t, group + g, &lanes);
        }
    }
}
