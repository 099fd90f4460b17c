//! One forward pass as the layers see it: the validated batch, and the buffers that every pass reuses.

use assay_kernels::attention::SequenceSpan;
use assay_kernels::quantize::ActivationProfile;

use crate::backend::Backend;
use crate::forward::TokenId;
use crate::split::Part;

/// A validated batch with what runs it. T is its number of rows.
#[derive(Debug)]
pub(crate) struct Pass<'a, B: Backend> {
    pub(crate) backend: &'a B,
    /// The batch where it is computed.
    pub(crate) batch: &'a B::Batch,
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
    /// The layers that are run.
    pub(crate) part: &'a Part,
}

impl<B: Backend> Pass<'_, B> {
    /// T.
    pub(crate) fn num_tokens(&self) -> usize {
        self.token_ids.len()
    }

    /// Rows `x`, `[T, k]`, as the input of projections; takes `buffer`, which the caller puts back.
    pub(crate) fn input<'x>(
        &'x self,
        x: &'x B::Rows,
        k: usize,
        buffer: &mut B::Quantized,
    ) -> B::Input<'x> {
        self.backend
            .input(x, k, self.profile, std::mem::take(buffer))
    }
}

/// Intermediate values of a pass; rows keep their memory between passes.
#[derive(Debug)]
pub(crate) struct Buffers<B: Backend> {
    /// The residual stream, `[T, hidden_size]`.
    pub(crate) hidden: B::Rows,
    /// Input of a block after its norm, `[T, hidden_size]`.
    pub(crate) normed: B::Rows,
    /// What a block adds to the residual stream, `[T, hidden_size]`.
    pub(crate) branch: B::Rows,
    /// `[T, num_heads, head_dim]`.
    pub(crate) q: B::Rows,
    /// `[T, num_kv_heads, head_dim]`.
    pub(crate) k: B::Rows,
    /// `[T, num_kv_heads, head_dim]`.
    pub(crate) v: B::Rows,
    /// Output of the heads, `[T, num_heads, head_dim]`.
    pub(crate) heads: B::Rows,
    /// `[T, intermediate_size]`.
    pub(crate) gate: B::Rows,
    /// `[T, intermediate_size]`.
    pub(crate) up: B::Rows,
    /// `[T, intermediate_size]`.
    pub(crate) gated: B::Rows,
    /// Input of the head, `[num_logit_rows, hidden_size]`: the wanted rows after the final norm.
    pub(crate) head_input: B::Rows,
    /// The rows of `head_input` that the head is asked for.
    pub(crate) head_part: B::Rows,
    /// What the head answers, `[rows asked for, vocab_size]`.
    pub(crate) logits: B::Rows,
    /// Integers of the rows last multiplied.
    pub(crate) quantized: B::Quantized,
}

impl<B: Backend> Default for Buffers<B> {
    fn default() -> Self {
        Self {
            hidden: B::Rows::default(),
            normed: B::Rows::default(),
            branch: B::Rows::default(),
            q: B::Rows::default(),
            k: B::Rows::default(),
            v: B::Rows::default(),
            heads: B::Rows::default(),
            gate: B::Rows::default(),
            up: B::Rows::default(),
            gated: B::Rows::default(),
            head_input: B::Rows::default(),
            head_part: B::Rows::default(),
            logits: B::Rows::default(),
            quantized: B::Quantized::default(),
        }
    }
}
