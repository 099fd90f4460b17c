//! RMSNorm on AVX2: the 32 lanes are four registers.

use super::reference;
use crate::numerics::SUM_CHUNK;
use crate::x86::avx2::{load, sum_lanes};
use std::arch::x86_64::*;

#[target_feature(enable = "avx2,fma")]
pub(super) fn row(x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
    reference::apply(x, inverse_rms(x, eps), weight, out);
}

#[target_feature(enable = "avx2,fma")]
pub(super) fn row_in_place(x: &mut [f32], weight: &[f32], eps: f32) {
    let r = inverse_rms(x, eps);
    reference::apply_in_place(x, r, weight);
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn inverse_rms(x: &[f32], eps: f32) -> f32 {
    let mut total = 0.0;
    for chunk in x.chunks(SUM_CHUNK) {
        let mut lanes = [_mm256_setzero_ps(); 4];
        let (blocks, tail) = chunk.as_chunks::<32>();
        for block in blocks {
            square_into(&mut lanes, block);
        }
        if !tail.is_empty() {
            // A lane starts at +0 and never falls below it, so adding 0·0 leaves its bits alone.
            let mut padded = [0.0; 32];
            padded[..tail.len()].copy_from_slice(tail);
            square_into(&mut lanes, &padded);
        }
        total += sum_lanes(lanes);
    }
    reference::finish(total, x.len(), eps)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn square_into(lanes: &mut [__m256; 4], block: &[f32; 32]) {
    for (lane, values) in lanes.iter_mut().zip(block.as_chunks::<8>().0) {
        let values = load(values);
        *lane = _mm256_fmadd_ps(values, values, *lane);
    }
}
