//! RMSNorm on AVX-512: the 32 lanes are two registers.

use super::reference;
use crate::numerics::SUM_CHUNK;
use crate::x86::avx512::{load, load_partial, sum_lanes};
use std::arch::x86_64::*;

#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2,fma")]
pub(super) fn row(x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
    reference::apply(x, inverse_rms(x, eps), weight, out);
}

#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2,fma")]
pub(super) fn row_in_place(x: &mut [f32], weight: &[f32], eps: f32) {
    let r = inverse_rms(x, eps);
    reference::apply_in_place(x, r, weight);
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2,fma")]
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
