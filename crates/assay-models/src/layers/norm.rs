//! Root-mean-square normalisation, over rows or over the heads of rows.

use crate::backend::Backend;

/// `x / rms(x) * weight`.
#[derive(Debug)]
pub(crate) struct RmsNorm<B: Backend> {
    /// `[n]`; Gemma's files hold 1 + the published weight.
    pub(crate) weight: B::Vector,
    /// Added to the mean square.
    pub(crate) eps: f32,
}

impl<B: Backend> RmsNorm<B> {
    /// `out = norm(x)`, rows of `n`; `out` becomes `len` elements, as long as `x`.
    pub(crate) fn forward(&self, backend: &B, x: &B::Rows, len: usize, out: &mut B::Rows) {
        backend.resize(out, len);
        backend.rms_norm(x, &self.weight, self.eps, out);
    }

    /// `x = norm(x)`, rows (or heads) of `n`.
    pub(crate) fn forward_in_place(&self, backend: &B, x: &mut B::Rows) {
        backend.rms_norm_in_place(x, &self.weight, self.eps);
    }
}
