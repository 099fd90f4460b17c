//! A projection `y = W x`, with the bias and the scale that some files add.

use std::sync::{Arc, OnceLock};

use assay_formats::DType;
use assay_kernels::Compute;
use assay_kernels::matmul::{Activations, PackError, PackedMatrix, matmul};
use assay_kernels::residual::scale;

/// A weight matrix `[n, k]`, shared where two roles use the same tensor (a tied head is stored once).
#[derive(Clone, Debug)]
pub(crate) struct Matrix {
    n: usize,
    k: usize,
    /// Filled once, before the model is handed out.
    packed: Arc<OnceLock<PackedMatrix>>,
}

impl Matrix {
    /// A matrix to be filled.
    pub(crate) fn empty(n: usize, k: usize) -> Self {
        Self {
            n,
            k,
            packed: Arc::new(OnceLock::new()),
        }
    }

    /// Packs `bytes`, `n` rows of `k` elements of `dtype`.
    pub(crate) fn fill(
        &self,
        cx: &Compute,
        dtype: DType,
        n: usize,
        k: usize,
        bytes: &[u8],
    ) -> Result<(), PackError> {
        let packed = PackedMatrix::pack_parallel(cx, dtype, n, k, bytes)?;
        // A tensor is asked for once, so a second fill cannot happen; if it did, the first would stand.
        self.packed.get_or_init(|| packed);
        Ok(())
    }

    /// Outputs.
    pub(crate) fn n(&self) -> usize {
        self.n
    }

    /// Inputs.
    pub(crate) fn k(&self) -> usize {
        self.k
    }

    fn packed(&self) -> &PackedMatrix {
        self.packed
            .get()
            .expect("loading fills every matrix before a model exists")
    }

    /// Row `index` as f32.
    pub(crate) fn row_into(&self, index: usize, out: &mut [f32]) {
        self.packed().row_into(index, out);
    }

    /// `out = W x + bias`, `[num_tokens, n]`.
    pub(crate) fn forward(
        &self,
        cx: &Compute,
        x: &Activations<'_>,
        bias: Option<&[f32]>,
        out: &mut [f32],
    ) {
        matmul(cx, self.packed(), x, bias, out);
    }
}

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
