//! Rotation on AVX-512: sixteen elements at a time, tails by mask (a masked store of a whole register is slow).

use super::RopeStyle;
use crate::x86::avx512::{load, load_partial, store, store_partial};
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
    let (x0s, x0_tail) = x0.as_chunks_mut::<16>();
    let (x1s, x1_tail) = x1.as_chunks_mut::<16>();
    let (coss, cos_tail) = cos.as_chunks::<16>();
    let (sins, sin_tail) = sin.as_chunks::<16>();
    for (((x0, x1), c), s) in x0s.iter_mut().zip(x1s).zip(coss).zip(sins) {
        let (a, b) = turn(load(x0), load(x1), load(c), load(s));
        store(x0, a);
        store(x1, b);
    }
    if !cos_tail.is_empty() {
        let (c, s) = (load_partial(cos_tail), load_partial(sin_tail));
        let (a, b) = turn(load_partial(x0_tail), load_partial(x1_tail), c, s);
        store_partial(x0_tail, a);
        store_partial(x1_tail, b);
    }
}

#[inline]
#[target_feature(enable = "avx512f,fma")]
fn turn(x0: __m512, x1: __m512, c: __m512, s: __m512) -> (__m512, __m512) {
    // fmsub rounds x0·c − (x1·s) once: the reference's fma with a negated product.
    (
        _mm512_fmsub_ps(x0, c, _mm512_mul_ps(x1, s)),
        _mm512_fmadd_ps(x1, c, _mm512_mul_ps(x0, s)),
    )
}

#[inline]
#[target_feature(enable = "avx512f,fma")]
fn interleaved(x: &mut [f32], cos: &[f32], sin: &[f32]) {
    let (xs, x_tail) = x.as_chunks_mut::<32>();
    let (coss, cos_tail) = cos.as_chunks::<16>();
    let (sins, sin_tail) = sin.as_chunks::<16>();
    for ((x, c), s) in xs.iter_mut().zip(coss).zip(sins) {
        let (c, s) = (load(c), load(s));
        for (half, x) in x.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            store(x, turn_interleaved(load(x), half, c, s));
        }
    }
    if !cos_tail.is_empty() {
        let (c, s) = (load_partial(cos_tail), load_partial(sin_tail));
        for (half, x) in x_tail.chunks_mut(16).enumerate() {
            store_partial(x, turn_interleaved(load_partial(x), half, c, s));
        }
    }
}

/// Turns eight pairs by the angles in the given half (0 or 1) of `c` and `s`.
#[inline]
#[target_feature(enable = "avx512f,fma")]
fn turn_interleaved(x: __m512, half: usize, c: __m512, s: __m512) -> __m512 {
    let low = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    let index = _mm512_add_epi32(low, _mm512_set1_epi32(8 * half as i32));
    let swapped = _mm512_permute_ps::<0b10_11_00_01>(x);
    let c = _mm512_permutexvar_ps(index, c);
    let s = _mm512_permutexvar_ps(index, s);
    // Even lanes subtract the product, odd lanes add it, each with one rounding.
    _mm512_fmaddsub_ps(x, c, _mm512_mul_ps(swapped, s))
}
