//! Float product on AVX-512: one register is one group; tiles of groups by tokens hide the chain's latency.

use super::Product;
use super::matrix::{FloatMatrix, GROUP_ROWS, Groups};
use crate::numerics::MATMUL_BLOCK;
use crate::x86::avx512::{load, store};
use std::arch::x86_64::*;
use std::ops::Range;

#[target_feature(enable = "avx512f,avx2,fma,f16c")]
pub(super) fn multiply(matrix: &FloatMatrix, product: &Product<'_>, groups: Range<usize>) {
    match &matrix.groups {
        Groups::F32(packed) => tiles(packed, product, groups, |w| load(w)),
        Groups::F16(packed) => tiles(packed, product, groups, |w| _mm512_cvtph_ps(load_u16(w))),
        Groups::BF16(packed) => tiles(packed, product, groups, |w| {
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(load_u16(w))))
        }),
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_u16(values: &[u16; GROUP_ROWS]) -> __m256i {
    // SAFETY: the array holds the 32 bytes read; the load needs no alignment.
    unsafe { _mm256_loadu_si256(values.as_ptr().cast()) }
}

/// Covers groups × tokens with tiles of 4 × 4, 4 × 2, 4 × 1 and, for the last groups, 1 × the same.
#[inline]
#[target_feature(enable = "avx512f,avx2,fma,f16c")]
fn tiles<E>(
    packed: &[[E; GROUP_ROWS]],
    product: &Product<'_>,
    groups: Range<usize>,
    load_weights: impl Fn(&[E; GROUP_ROWS]) -> __m512 + Copy,
) {
    let mut token = 0;
    while token < product.num_tokens {
        let num_tokens = match product.num_tokens - token {
            4.. => 4,
            2 | 3 => 2,
            _ => 1,
        };
        let mut group = groups.start;
        while group < groups.end {
            let wide = groups.end - group >= 4;
            match (wide, num_tokens) {
                (true, 4) => tile::<E, 4, 4>(packed, product, group, token, load_weights),
                (true, 2) => tile::<E, 4, 2>(packed, product, group, token, load_weights),
                (true, _) => tile::<E, 4, 1>(packed, product, group, token, load_weights),
                (false, 4) => tile::<E, 1, 4>(packed, product, group, token, load_weights),
                (false, 2) => tile::<E, 1, 2>(packed, product, group, token, load_weights),
                (false, _) => tile::<E, 1, 1>(packed, product, group, token, load_weights),
            }
            group += if wide { 4 } else { 1 };
        }
        token += num_tokens;
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx2,fma,f16c")]
fn tile<E, const G: usize, const T: usize>(
    packed: &[[E; GROUP_ROWS]],
    product: &Product<'_>,
    group: usize,
    token: usize,
    load_weights: impl Fn(&[E; GROUP_ROWS]) -> __m512,
) {
    let k = product.num_cols;
    let weights: [&[[E; GROUP_ROWS]]; G] = std::array::from_fn(|g| &packed[(group + g) * k..][..k]);
    let x: [&[f32]; T] = std::array::from_fn(|t| product.x_row(token + t));
    let mut sums = [[_mm512_setzero_ps(); G]; T];
    let mut start = 0;
    while start < k {
        let end = k.min(start + MATMUL_BLOCK);
        let mut acc = [[_mm512_setzero_ps(); G]; T];
        for i in start..end {
            let mut w = [_mm512_setzero_ps(); G];
            for (w, weights) in w.iter_mut().zip(&weights) {
                // SAFETY: i < k, the length of every slice in `weights`.
                *w = load_weights(unsafe { weights.get_unchecked(i) });
            }
            for (acc, x) in acc.iter_mut().zip(&x) {
                // SAFETY: i < k, the length of every slice in `x`.
                let x = _mm512_set1_ps(unsafe { *x.get_unchecked(i) });
                for (acc, &w) in acc.iter_mut().zip(&w) {
                    *acc = _mm512_fmadd_ps(w, x, *acc);
                }
            }
        }
        for (sums, acc) in sums.iter_mut().flatten().zip(acc.iter().flatten()) {
            *sums = _mm512_add_ps(*sums, *acc);
        }
        start = end;
    }
    for (t, sums) in sums.iter().enumerate() {
        for (g, &sum) in sums.iter().enumerate() {
            let mut lanes = [0.0; GROUP_ROWS];
            store(&mut lanes, sum);
            product.finish(token + t, group + g, &lanes);
        }
    }
}
