//! A projection `y = W x`, with the bias and the scale that some files add.

use assay_kernels::Compute;
use assay_kernels::matmul::Activations;
use assay_kernels::residual::scale;

use super::matrix::Matrix;

/// Which comes first where a file gives a projection both a scale and a bias: the format's custom differs by place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScaleOrder {
    /// `W x * scale + bias`: the projections of the attention.
    ScaleThenBias,
    /// `(W x + bias) * scale`: the feed-forward block.
    BiasThenScale,
}

/// A projection with what its file adds to it.
#[derive(Debug)]
pub(crate) struct Linear {
    pub(crate) weight: Matrix,
    /// `[n]`.
    pub(crate) bias: Option<Vec<f32>>,
    /// Factor of every output.
    pub(crate) scale: Option<f32>,
    pub(crate) order: ScaleOrder,
}

impl Linear {
    /// Outputs.
    pub(crate) fn n(&self) -> usize {
        self.weight.n()
    }

    /// Inputs.
    pub(crate) fn k(&self) -> usize {
        self.weight.k()
    }

    /// Rows `x` to `out`, `[num_tokens, n]`.
    pub(crate) fn forward(&self, cx: &Compute, x: &Activations<'_>, out: &mut [f32]) {
        let bias = self.bias.as_deref();
        match (self.scale, self.order, bias) {
            (None, _, bias) => self.weight.forward(cx, x, bias, out),
            (Some(factor), ScaleOrder::BiasThenScale, bias) => {
                self.weight.forward(cx, x, bias, out);
                scale(cx, out, factor);
            }
            (Some(factor), ScaleOrder::ScaleThenBias, bias) => {
                self.weight.forward(cx, x, None, out);
                scale(cx, out, factor);
                if let Some(bias) = bias {
                    add_bias(cx, bias, out);
                }
            }
        }
    }
}

/// `out[t] += bias` for every row.
fn add_bias(cx: &Compute, bias: &[f32], out: &mut [f32]) {
    cx.pool.for_each_chunk(out, bias.len(), |_, row| {
        for (y, b) in row.iter_mut().zip(bias) {
            *y += b;
        }
    });
}
