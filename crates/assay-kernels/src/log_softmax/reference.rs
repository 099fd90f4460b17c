//! The meaning of the two reductions of a row, in contract order.

use super::SUM_LANES;
use crate::exp64::exp64;

/// Largest logit, NaN if any is NaN, −infinity for an empty row.
pub(super) fn row_max(row: &[f32]) -> f32 {
    row.iter().fold(f32::NEG_INFINITY, |max, &logit| {
        if max.is_nan() || logit.is_nan() {
            f32::NAN
        } else if logit > max {
            logit
        } else {
            max
        }
    })
}

/// SUM32 of `EXP64(f64(l) - f64(max))` over one chunk.
pub(super) fn chunk_sum(chunk: &[f32], max: f32) -> f64 {
    let mut lanes = [0.0; SUM_LANES];
    for (i, &logit) in chunk.iter().enumerate() {
        lanes[i % SUM_LANES] += exp64(f64::from(logit) - f64::from(max));
    }
    tree_sum(lanes)
}

/// The tree 16, 8, 4, 2, 1.
#[inline(always)]
pub(super) fn tree_sum(mut lanes: [f64; SUM_LANES]) -> f64 {
    let mut half = SUM_LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] += lanes[lane + half];
        }
        half /= 2;
    }
    lanes[0]
}
