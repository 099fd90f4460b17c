//! Rotation on AVX-512: sixteen elements at a time, tails by mask.

use super::RopeStyle;
use crate::x86::avx512::{load_partial, store_partial};
use std::arch::x86_64::*;

#[target_feature(enable = "avx512f,fma")]
pub(super) fn rotate(style: RopeStyle, x: &mut [f32], cos: &[f32], sin: &[f32]) {
    match style {
        RopeStyle::Interleaved => interleaved(x, cos, sin),
        RopeStyle::HalfSplit => {
            let (x0, x1) = x.split_at_mut(cos.len());
            half_split(x0, x1, cos, sin);
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f,fma")]
fn half_split(x0: &mut [f32], x1: &mut [f32], cos: &[f32], sin: &[f32]) {
    let pairs = x0.chunks_mut(16).zip(x1.chunks_mut(16));
    for ((x0, x1), (c, s)) in pairs.zip(cos.chunks(16).zip(sin.chunks(16))) {
        let (a, b, c, s) = (
            load_partial(x0),
            load_partial(x1),
            load_partial(c),
            load_partial(s),
        );
        // fmsub rounds a·c − (b·s) once: the reference's fma with a negated product.
        store_partial(x0, _mm512_fmsub_ps(a, c, _mm512_mul_ps(b, s)));
        store_partial(x1, _mm512_fmadd_ps(b, c, _mm512_mul_ps(a, s)));
    }
}

#[inline]
#[target_feature(enable = "avx512f,fma")]
fn interleaved(x: &mut [f32], cos: &[f32], sin: &[f32]) {
    let low = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    let high = _mm512_setr_epi32(8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15);
    for (x, (c, s)) in x.chunks_mut(32).zip(cos.chunks(16).zip(sin.chunks(16))) {
        let (c, s) = (load_partial(c), load_partial(s));
        for (x, index) in x.chunks_mut(16).zip([low, high]) {
            let v = load_partial(x);
            let swapped = _mm512_permute_ps::<0b10_11_00_01>(v);
            let c = _mm512_permutexvar_ps(index, c);
            let s = _mm512_permutexvar_ps(index, s);
            // Even lanes subtract the product, odd lanes add it, each with one rounding.
            store_partial(x, _mm512_fmaddsub_ps(v, c, _mm512_mul_ps(swapped, s)));
        }
    }
}
