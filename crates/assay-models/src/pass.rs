//! One forward pass as the layers see it: the validated batch, and the buffers that every pass reuses.

use assay_kernels::Compute;
use assay_kernels::attention::SequenceSpan;
use assay_kernels::matmul::Activations;
use assay_kernels::quantize::{ActivationProfile, QuantizedActivations};

use crate::forward::TokenId;

/// A validated batch with what runs it. T is its number of rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pass<'a> {
    pub(crate) cx: &'a Compute,
    /// Precision of the activations inside the layers.
    pub(crate) profile: ActivationProfile,
    /// `[T]`.
    pub(crate) token_ids: &'a [TokenId],
    /// `[T]` absolute positions.
    pub(crate) positions: &'a [u32],
    /// Rows, positions and blocks of each sequence.
    pub(crate) spans: &'a [SequenceSpan<'a>],
    /// Rows whose logits are wanted, ascending.
    pub(crate) logit_rows: &'a [u32],
}

impl Pass<'_> {
    /// T.
    pub(crate) fn num_tokens(&self) -> usize {
        self.token_ids.len()
    }

    /// Rows `x`, `[T, k]`, as the input of projections; takes `buffer`, which the caller puts back.
    pub(crate) fn activations<'x>(
        &'x self,
        x: &'x [f32],
        k: usize,
        buffer: &mut QuantizedActivations,
    ) -> Activations<'x> {
        Activations::with_buffer(self.cx, x, k, self.profile, std::mem::take(buffer))
    }
}

/// f32 rows that keep their memory between passes.
#[derive(Debug, Default)]
pub(crate) struct Rows(Vec<f32>);

impl Rows {
    /// `len` elements of unspecified values, to be overwritten.
    pub(crate) fn sized(&mut self, len: usize) -> &mut [f32] {
        self.0.resize(len, 0.0);
        &mut self.0
    }

    /// The elements last written.
    pub(crate) fn get(&self) -> &[f32] {
        &self.0
    }

    /// The elements last written, to be changed in place.
    pub(crate) fn get_mut(&mut self) -> &mut [f32] {
        &mut self.0
    }
}

/// Intermediate values of a pass.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    /// The residual stream, `[T, hidden_size]`.
    pub(crate) hidden: Rows,
    /// Input of a block after its norm, `[T, hidden_size]`.
    pub(crate) normed: Rows,
    /// What a block adds to the residual stream, `[T, hidden_size]`.
    pub(crate) branch: Rows,
    /// `[T, num_heads, head_dim]`.
    pub(crate) q: Rows,
    /// `[T, num_kv_heads, head_dim]`.
    pub(crate) k: Rows,
    /// `[T, num_kv_heads, head_dim]`.
    pub(crate) v: Rows,
    /// Output of the heads, `[T, num_heads, head_dim]`.
    pub(crate) heads: Rows,
    /// `[T, intermediate_size]`.
    pub(crate) gate: Rows,
    /// `[T, intermediate_size]`.
    pub(crate) up: Rows,
    /// `[T, intermediate_size]`.
    pub(crate) gated: Rows,
    /// Input of the head, `[num_logit_rows, hidden_size]`: the wanted rows after the final norm.
    pub(crate) head_input: Rows,
    /// Integers of the rows last multiplied.
    pub(crate) quantized: QuantizedActivations,
}
