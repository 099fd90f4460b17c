//! The meaning of the two reductions of a row, in contract order.

use crate::exp64::exp64;
use crate::numerics::sum32;

/// Largest logit, NaN if any is NaN, −infinity for an empty row.
pub(super) fn row_max(logits: &[f32]) -> f32 {
    logits.iter().fold(f32::NEG_INFINITY, |max, &logit| {
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
    sum32(chunk.len(), |lane: f64, i| {
        lane + exp64(f64::from(chunk[i]) - f64::from(max))
    })
}
