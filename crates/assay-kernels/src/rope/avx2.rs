//! Rotation on AVX2: eight elements at a time, tails by the reference.

use super::{RopeStyle, reference};
use crate::x86::avx2::{load, store};
use std::arch::x86_64::*;

#[target_feature(enable = "avx2,fma")]
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
#[target_feature(enable = "avx2,fma")]
fn half_split(x0: &mut [f32], x1: &mut [f32], cos: &[f32], sin: &[f32]) {
    let (x0s, x0_tail) = x0.as_chunks_mut::<8>();
    let (x1s, x1_tail) = x1.as_chunks_mut::<8>();
    let (coss, cos_tail) = cos.as_chunks::<8>();
    let (sins, sin_tail) = sin.as_chunks::<8>();
    for (((x0, x1), c), s) in x0s.iter_mut().zip(x1s).zip(coss).zip(sins) {
        let (a, b, c, s) = (load(x0), load(x1), load(c), load(s));
        // fmsub rounds a·c − (b·s) once: the reference's fma with a negated product.
        store(x0, _mm256_fmsub_ps(a, c, _mm256_mul_ps(b, s)));
        store(x1, _mm256_fmadd_ps(b, c, _mm256_mul_ps(a, s)));
    }
    reference::half_split(x0_tail, x1_tail, cos_tail, sin_tail);
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn interleaved(x: &mut [f32], cos: &[f32], sin: &[f32]) {
    let (xs, x_tail) = x.as_chunks_mut::<16>();
    let (coss, cos_tail) = cos.as_chunks::<8>();
    let (sins, sin_tail) = sin.as_chunks::<8>();
    let low = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
    let high = _mm256_setr_epi32(4, 4, 5, 5, 6, 6, 7, 7);
    for ((x, c), s) in xs.iter_mut().zip(coss).zip(sins) {
        let (c, s) = (load(c), load(s));
        for (x, index) in x.as_chunks_mut::<8>().0.iter_mut().zip([low, high]) {
            let v = load(x);
            let swapped = _mm256_permute_ps::<0b10_11_00_01>(v);
            let c = _mm256_permutevar8x32_ps(c, index);
            let s = _mm256_permutevar8x32_ps(s, index);
            // Even lanes subtract the product, odd lanes add it, each with one rounding.
            store(x, _mm256_fmaddsub_ps(v, c, _mm256_mul_ps(swapped, s)));
        }
    }
    reference::interleaved(x_tail, cos_tail, sin_tail);
}
