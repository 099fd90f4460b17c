//! The final norm and the head, run only for the rows whose logits are wanted, and for few of them at a time if the
//! caller likes: a row of logits is much longer than a hidden state.

use std::ops::Range;

use assay_kernels::quantize::ActivationProfile;

use super::matrix::Matrix;
use super::norm::RmsNorm;
use crate::backend::Backend;
use crate::pass::{Buffers, Pass};

/// Final norm, head and cap.
#[derive(Debug)]
pub(crate) struct LmHead<B: Backend> {
    /// `[hidden_size]`.
    pub(crate) norm: RmsNorm<B>,
    /// `[vocab_size, hidden_size]`; the embedding's own matrix where the head is tied.
    pub(crate) weight: Matrix<B>,
    /// Cap of the logits.
    pub(crate) softcap: Option<f32>,
}

impl<B: Backend> LmHead<B> {
    /// Takes the wanted rows of `buffers.hidden` to `buffers.head_input`, `[num_logit_rows, hidden_size]`.
    pub(crate) fn norm_wanted(&self, pass: &Pass<'_, B>, buffers: &mut Buffers<B>) {
        let (backend, hidden_size) = (pass.backend, self.weight.k());
        let wanted_len = pass.logit_rows.len() * hidden_size;

        // 1. The wanted rows                                   [R, hidden_size]
        backend.resize(&mut buffers.branch, wanted_len);
        backend.gather_wanted(pass, &buffers.hidden, hidden_size, &mut buffers.branch);
        // 2. h = RMSNorm(x)                                    [R, hidden_size]
        self.norm.forward(
            backend,
            &buffers.branch,
            wanted_len,
            &mut buffers.head_input,
        );
    }

    /// Logits of the rows `wanted` of `buffers.head_input`, to `buffers.logits`, `[wanted.len(), vocab_size]`.
    ///
    /// # Panics
    /// If [`LmHead::norm_wanted`] left fewer rows.
    pub(crate) fn logits(&self, backend: &B, wanted: Range<usize>, buffers: &mut Buffers<B>) {
        let (hidden_size, num_rows) = (self.weight.k(), wanted.len());
        let part = &mut buffers.head_part;
        backend.resize(part, num_rows * hidden_size);
        backend.copy_rows(
            &buffers.head_input,
            hidden_size,
            wanted.start,
            num_rows,
            part,
        );

        // 3. logits = W_head h, from 16-bit activations in either profile   [R, vocab_size]
        backend.resize(&mut buffers.logits, num_rows * self.weight.n());
        let buffer = std::mem::take(&mut buffers.quantized);
        let h = backend.input(
            &buffers.head_part,
            hidden_size,
            ActivationProfile::A16,
            buffer,
        );
        self.weight.forward(backend, &h, None, &mut buffers.logits);
        buffers.quantized = B::into_buffer(h);
        if let Some(cap) = self.softcap {
            backend.softcap(&mut buffers.logits, cap);
        }
    }
}
