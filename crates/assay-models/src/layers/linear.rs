//! A projection `y = W x`, with the bias and the scale that some files add.

use super::matrix::Matrix;
use crate::backend::{Backend, Product};

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
pub(crate) struct Linear<B: Backend> {
    pub(crate) weight: Matrix<B>,
    /// `[n]`.
    pub(crate) bias: Option<B::Vector>,
    /// Factor of every output.
    pub(crate) scale: Option<f32>,
    pub(crate) order: ScaleOrder,
}

impl<B: Backend> Linear<B> {
    /// Outputs.
    pub(crate) fn n(&self) -> usize {
        self.weight.n()
    }

    /// Inputs.
    pub(crate) fn k(&self) -> usize {
        self.weight.k()
    }

    /// `num_tokens` rows `x` to `out`, which becomes `[num_tokens, n]`.
    pub(crate) fn forward(
        &self,
        backend: &B,
        x: &B::Input<'_>,
        num_tokens: usize,
        out: &mut B::Rows,
    ) {
        backend.resize(out, num_tokens * self.n());
        let bias = self.bias.as_ref();
        match (self.scale, self.order, bias) {
            (None, _, bias) => self.weight.forward(backend, x, bias, out),
            (Some(factor), ScaleOrder::BiasThenScale, bias) => {
                self.weight.forward(backend, x, bias, out);
                backend.scale(out, factor);
            }
            (Some(factor), ScaleOrder::ScaleThenBias, bias) => {
                self.weight.forward(backend, x, None, out);
                backend.scale(out, factor);
                if let Some(bias) = bias {
                    backend.add_bias(out, bias);
                }
            }
        }
    }

    /// As [`Linear::forward`], added to `onto` of that length; `scratch` is lost.
    pub(crate) fn forward_onto(
        &self,
        backend: &B,
        x: &B::Input<'_>,
        num_tokens: usize,
        onto: &mut B::Rows,
        scratch: &mut B::Rows,
    ) {
        if self.scale.is_some() {
            self.forward(backend, x, num_tokens, scratch);
            backend.add(onto, scratch);
        } else {
            backend.resize(scratch, num_tokens * self.n());
            backend.matmul_add(x, self.weight.get(), self.bias.as_ref(), onto, scratch);
        }
    }
}

/// Where the output of a block goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// To `buffers.branch`.
    Branch,
    /// On top of `buffers.hidden`; `buffers.branch` is scratch.
    Hidden,
}

/// `num_tokens` rows `x` through several projections: as [`Linear::forward`] of each, in one go where none has a scale.
pub(crate) fn forward_all<B: Backend, const N: usize>(
    backend: &B,
    x: &B::Input<'_>,
    num_tokens: usize,
    projections: [(&Linear<B>, &mut B::Rows); N],
) {
    if projections.iter().any(|(linear, _)| linear.scale.is_some()) {
        for (linear, out) in projections {
            linear.forward(backend, x, num_tokens, out);
        }
        return;
    }
    let mut products = projections.map(|(linear, out)| {
        backend.resize(out, num_tokens * linear.n());
        Product {
            w: linear.weight.get(),
            bias: linear.bias.as_ref(),
            out,
        }
    });
    backend.matmul(x, &mut products);
}
