//! The weights of one chunk by lanes: scores in, `p` and its sum out.

use super::segment::KeyRange;
use crate::exp::exp_lanes;
use crate::numerics::{SUM_LANES, sum_lanes};
use crate::simd::{Simd, largest_lane};
use crate::softcap::softcap_lanes;

/// Turns the scores of `keys` of a chunk into `p`, in place, and returns `(m_c, l_c)`.
///
/// A NaN score does not enter `m_c` here; its `p` is NaN and with it `l_c`, so that `o / l` is NaN either way.
///
/// # Safety
/// A whole chunk is readable and writable at `scores`, and `keys` is a non-empty range of it.
#[inline(always)]
pub(super) unsafe fn chunk_weights<S: Simd>(
    simd: S,
    softcap: Option<f32>,
    keys: KeyRange,
    scores: *mut f32,
) -> (f32, f32) {
    let groups = keys.first / SUM_LANES * SUM_LANES..keys.end;
    let lowest = simd.splat(f32::NEG_INFINITY);
    let zero = simd.splat(0.0);
    let lanes_of = |at: usize| (keys.first as i32 - at as i32, keys.end as i32 - at as i32);
    let mut largest = lowest;
    for group in groups.clone().step_by(SUM_LANES) {
        for at in (group..group + SUM_LANES).step_by(S::F32_LANES) {
            // SAFETY: groups are aligned to 32 and begin below `end <= 256`, so they end inside the chunk.
            let mut score = unsafe { simd.load(scores.add(at)) };
            if let Some(cap) = softcap {
                score = softcap_lanes(simd, score, simd.splat(cap));
                // SAFETY: as for the load.
                unsafe { simd.store(scores.add(at), score) };
            }
            let (first, end) = lanes_of(at);
            largest = simd.max(simd.select_lanes(first, end, score, lowest), largest);
        }
    }
    let max = largest_lane(simd, largest);
    let max_lanes = simd.splat(max);
    let mut sums = [zero; 4];
    for group in groups.step_by(SUM_LANES) {
        for (at, sum) in (group..group + SUM_LANES)
            .step_by(S::F32_LANES)
            .zip(&mut sums)
        {
            let (first, end) = lanes_of(at);
            // SAFETY: as above.
            unsafe {
                let p = exp_lanes(simd, simd.sub(simd.load(scores.add(at)), max_lanes));
                // A key that is absent adds +0 to a sum that is never −0: no trace of it remains.
                let p = simd.select_lanes(first, end, p, zero);
                simd.store(scores.add(at), p);
                *sum = simd.add(*sum, p);
            }
        }
    }
    let mut lanes = [0.0; SUM_LANES];
    for (lane, &sum) in (0..SUM_LANES).step_by(S::F32_LANES).zip(&sums) {
        // SAFETY: `lane + F32_LANES <= SUM_LANES`, the array's length.
        unsafe { simd.store(lanes.as_mut_ptr().add(lane), sum) };
    }
    (max, sum_lanes(lanes))
}
