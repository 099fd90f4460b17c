//! The two reductions of a row by lanes.

use super::reference;
use crate::exp64::{exp64, exp64_lanes};
use crate::numerics::{SUM_CHUNK, SUM_LANES, sum_lanes};
use crate::simd::{Simd, VectorOp, largest_lane};

/// The largest logit, NaN if any is NaN.
pub(super) struct RowMax<'a> {
    pub(super) logits: &'a [f32],
}

impl VectorOp for RowMax<'_> {
    type Output = f32;

    fn reference(self) -> f32 {
        reference::row_max(self.logits)
    }

    #[inline(always)]
    fn vector<S: Simd>(self, simd: S) -> f32 {
        const UNROLL: usize = 4;
        let step = UNROLL * S::F32_LANES;
        let mut largest = [simd.splat(f32::NEG_INFINITY); UNROLL];
        // A logit times 0 is NaN for NaN and for the infinities, whose rows take the slow and exact way.
        let mut nan = [simd.splat(0.0); UNROLL];
        let whole = self.logits.len() / step * step;
        for at in (0..whole).step_by(step) {
            for u in 0..UNROLL {
                // SAFETY: `at + step <= whole <= logits.len()`.
                let x = unsafe { simd.load(self.logits.as_ptr().add(at + u * S::F32_LANES)) };
                largest[u] = simd.max(x, largest[u]);
                nan[u] = simd.add(nan[u], simd.mul(x, simd.splat(0.0)));
            }
        }
        let mut tail = reference::row_max(&self.logits[whole..]);
        for u in 0..UNROLL {
            if simd.any_nan(nan[u]) {
                return reference::row_max(self.logits);
            }
            tail = reference::row_max(&[tail, largest_lane(simd, largest[u])]);
        }
        tail
    }
}

/// The sum of each chunk of [`SUM_CHUNK`] logits.
pub(super) struct ChunkSums<'a> {
    pub(super) logits: &'a [f32],
    pub(super) max: f32,
    pub(super) sums: &'a mut [f64],
}

impl VectorOp for ChunkSums<'_> {
    type Output = ();

    fn reference(self) {
        for (chunk, sum) in self.logits.chunks(SUM_CHUNK).zip(self.sums) {
            *sum = reference::chunk_sum(chunk, self.max);
        }
    }

    #[inline(always)]
    fn vector<S: Simd>(self, simd: S) {
        for (chunk, sum) in self.logits.chunks(SUM_CHUNK).zip(self.sums) {
            *sum = chunk_sum(simd, chunk, self.max);
        }
    }
}

#[inline(always)]
fn chunk_sum<S: Simd>(simd: S, chunk: &[f32], max: f32) -> f64 {
    let mut lanes = [0.0; SUM_LANES];
    let whole = chunk.len() / SUM_LANES * SUM_LANES;
    let widened_max = simd.splat64(f64::from(max));
    for lane in (0..SUM_LANES).step_by(S::F64_LANES) {
        let mut sum = simd.splat64(0.0);
        for at in (0..whole).step_by(SUM_LANES) {
            // SAFETY: `lane + F64_LANES <= SUM_LANES`, so the read ends inside `at + SUM_LANES <= whole`.
            let logits = unsafe { simd.load_widened(chunk.as_ptr().add(at + lane)) };
            sum = simd.add64(sum, exp64_lanes(simd, simd.sub64(logits, widened_max)));
        }
        // SAFETY: `lane + F64_LANES <= SUM_LANES`, the array's length.
        unsafe { simd.store64(lanes.as_mut_ptr().add(lane), sum) };
    }
    for (lane, &logit) in lanes.iter_mut().zip(&chunk[whole..]) {
        *lane += exp64(f64::from(logit) - f64::from(max));
    }
    sum_lanes(lanes)
}
