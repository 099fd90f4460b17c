//! RMSNorm on AVX-512: the 32 lanes are two registers.

use super::reference;
use crate::numerics::SUM_CHUNK;
use crate::x86::avx512::{load, load_partial, store, sum_lanes};
use std::arch::x86_64::*;

#[target_feature(enable = "avx512f,avx512dq,avx2,fma")]
pub(super) fn row(x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
    let r = inverse_rms(x, eps);
    let broadcast = _mm512_set1_ps(r);
    let (xs, x_tail) = x.as_chunks::<16>();
    let (weights, weight_tail) = weight.as_chunks::<16>();
    let (outs, out_tail) = out.as_chunks_mut::<16>();
    for ((out, x), weight) in outs.iter_mut().zip(xs).zip(weights) {
        store(
            out,
            _mm512_mul_ps(_mm512_mul_ps(load(x), broadcast), load(weight)),
        );
    }
    reference::apply(x_tail, r, weight_tail, out_tail);
}

#[target_feature(enable = "avx512f,avx512dq,avx2,fma")]
pub(super) fn row_in_place(x: &mut [f32], weight: &[f32], eps: f32) {
    let r = inverse_rms(x, eps);
    let broadcast = _mm512_set1_ps(r);
    let (xs, x_tail) = x.as_chunks_mut::<16>();
    let (weights, weight_tail) = weight.as_chunks::<16>();
    for (x, weight) in xs.iter_mut().zip(weights) {
        store(
            x,
            _mm512_mul_ps(_mm512_mul_ps(load(x), broadcast), load(weight)),
        );
    }
    reference::apply_in_place(x_tail, r, weight_tail);
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx2,fma")]
fn inverse_rms(x: &[f32], eps: f32) -> f32 {
    let mut total = 0.0;
    for chunk in x.chunks(SUM_CHUNK) {
        let mut lanes = [_mm512_setzero_ps(); 2];
        let (blocks, tail) = chunk.as_chunks::<32>();
        for block in blocks {
            for (lane, values) in lanes.iter_mut().zip(block.as_chunks::<16>().0) {
                let values = load(values);
                *lane = _mm512_fmadd_ps(values, values, *lane);
            }
        }
        // A lane starts at +0 and never falls below it, so adding 0·0 past the tail leaves its bits alone.
        for (lane, values) in lanes.iter_mut().zip(tail.chunks(16)) {
            let values = load_partial(values);
            *lane = _mm512_fmadd_ps(values, values, *lane);
        }
        total += sum_lanes(lanes);
    }
    reference::finish(total, x.len(), eps)
}
