//! The meaning of RMSNorm: scalar, in contract order.

use crate::numerics::sum32;

pub(super) fn row(x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
    apply(x, inverse_rms(x, eps), weight, out);
}

pub(super) fn row_in_place(x: &mut [f32], weight: &[f32], eps: f32) {
    apply_in_place(x, inverse_rms(x, eps), weight);
}

fn inverse_rms(x: &[f32], eps: f32) -> f32 {
    let sum_of_squares = sum32(x.len(), |acc: f32, i| x[i].mul_add(x[i], acc));
    finish(sum_of_squares, x.len(), eps)
}

/// `1 / sqrt(ss / n + eps)`: four IEEE operations.
#[inline(always)]
pub(super) fn finish(sum_of_squares: f32, n: usize, eps: f32) -> f32 {
    1.0 / (sum_of_squares / n as f32 + eps).sqrt()
}

/// `y = (x * r) * weight`; elementwise, so the SIMD files compile this same body for their ISA.
#[inline(always)]
pub(super) fn apply(x: &[f32], r: f32, weight: &[f32], out: &mut [f32]) {
    for ((out, x), weight) in out.iter_mut().zip(x).zip(weight) {
        *out = (x * r) * weight;
    }
}

/// [`apply`] where the row stands.
#[inline(always)]
pub(super) fn apply_in_place(x: &mut [f32], r: f32, weight: &[f32]) {
    for (x, weight) in x.iter_mut().zip(weight) {
        *x = (*x * r) * weight;
    }
}
