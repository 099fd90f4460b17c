//! Root-mean-square normalisation, over rows or over the heads of rows.

use assay_kernels::Compute;
use assay_kernels::rms_norm::{rms_norm, rms_norm_in_place};

/// `x / rms(x) * weight`.
#[derive(Debug)]
pub(crate) struct RmsNorm {
    /// `[n]`; Gemma's files hold 1 + the published weight.
    pub(crate) weight: Vec<f32>,
    /// Added to the mean square.
    pub(crate) eps: f32,
}

impl RmsNorm {
    /// `out = norm(x)`, rows of `n`.
    pub(crate) fn forward(&self, cx: &Compute, x: &[f32], out: &mut [f32]) {
        rms_norm(cx, x, &self.weight, self.eps, out);
    }

    /// `x = norm(x)`, rows (or heads) of `n`.
    pub(crate) fn forward_in_place(&self, cx: &Compute, x: &mut [f32]) {
        rms_norm_in_place(cx, x, &self.weight, self.eps);
    }
}
