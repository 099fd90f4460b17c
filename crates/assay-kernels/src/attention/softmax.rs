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
    let groups = (keys.first / SUM_LANES * SUM_LANES..keys.end).step_by(SUM_LANES);
    let is_whole = |group: usize| keys.first <= group && group + SUM_LANES <= keys.end;
    let mut largest = simd.splat(f32::NEG_INFINITY);
    for group in groups.clone() {
        // SAFETY: groups are aligned to 32 and begin below `end <= 256`, so they end inside the chunk.
        largest = unsafe {
            if is_whole(group) {
                largest_of::<S, true>(simd, softcap, keys, group, scores, largest)
            } else {
                largest_of::<S, false>(simd, softcap, keys, group, scores, largest)
            }
        };
    }
    let max = largest_lane(simd, largest);
    let max_lanes = simd.splat(max);
    let mut sums = [simd.splat(0.0); 4];
    for group in groups {
        // SAFETY: as above.
        unsafe {
            if is_whole(group) {
                weights_of::<S, true>(simd, max_lanes, keys, group, scores, &mut sums);
            } else {
                weights_of::<S, false>(simd, max_lanes, keys, group, scores, &mut sums);
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

/// `x` in the lanes from `at` on that are `keys`, all of them if `WHOLE`, and `other` elsewhere.
#[inline(always)]
fn visible<S: Simd, const WHOLE: bool>(
    simd: S,
    keys: KeyRange,
    at: usize,
    x: S::F32,
    other: S::F32,
) -> S::F32 {
    if WHOLE {
        return x;
    }
    let at = at as i32;
    simd.select_lanes(keys.first as i32 - at, keys.end as i32 - at, x, other)
}

/// Caps the scores of a group of 32 keys and takes them into `largest`.
///
/// # Safety
/// As [`chunk_weights`]; the group lies in the chunk, and all of it in `keys` if `WHOLE`.
#[inline(always)]
unsafe fn largest_of<S: Simd, const WHOLE: bool>(
    simd: S,
    softcap: Option<f32>,
    keys: KeyRange,
    group: usize,
    scores: *mut f32,
    mut largest: S::F32,
) -> S::F32 {
    let lowest = simd.splat(f32::NEG_INFINITY);
    for at in (group..group + SUM_LANES).step_by(S::F32_LANES) {
        // SAFETY: the caller's contract.
        let mut score = unsafe { simd.load(scores.add(at)) };
        if let Some(cap) = softcap {
            score = softcap_lanes(simd, score, simd.splat(cap));
            // SAFETY: the caller's contract.
            unsafe { simd.store(scores.add(at), score) };
        }
        let score = visible::<S, WHOLE>(simd, keys, at, score, lowest);
        largest = simd.max(score, largest);
    }
    largest
}

/// Turns the scores of a group of 32 keys into `p`, and adds them to the sums of their lanes.
///
/// # Safety
/// As [`largest_of`].
#[inline(always)]
unsafe fn weights_of<S: Simd, const WHOLE: bool>(
    simd: S,
    max: S::F32,
    keys: KeyRange,
    group: usize,
    scores: *mut f32,
    sums: &mut [S::F32; 4],
) {
    let places = (group..group + SUM_LANES).step_by(S::F32_LANES);
    for (at, sum) in places.zip(sums) {
        // SAFETY: the caller's contract.
        unsafe {
            let p = exp_lanes(simd, simd.sub(simd.load(scores.add(at)), max));
            // A key that is absent adds +0 to a sum that is never −0: no trace of it remains.
            let p = visible::<S, WHOLE>(simd, keys, at, p, simd.splat(0.0));
            simd.store(scores.add(at), p);
            *sum = simd.add(*sum, p);
        }
    }
}
