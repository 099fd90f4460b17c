//! The final norm and the head, run only for the rows whose logits are wanted, and for few of them at a time if the
//! caller likes: a row of logits is much longer than a hidden state.

use std::ops::Range;

use assay_kernels::Compute;
use assay_kernels::matmul::Activations;
use assay_kernels::quantize::ActivationProfile;
use assay_kernels::softcap::softcap;

use super::matrix::Matrix;
use super::norm::RmsNorm;
use crate::pass::{Buffers, Pass};

/// Final norm, head and cap.
#[derive(Debug)]
pub(crate) struct LmHead {
    /// `[hidden_size]`.
    pub(crate) norm: RmsNorm,
    /// `[vocab_size, hidden_size]`; the embedding's own matrix where the head is tied.
    pub(crate) weight: Matrix,
    /// Cap of the logits.
    pub(crate) softcap: Option<f32>,
}

impl LmHead {
    /// Takes the wanted rows of `buffers.hidden` to `buffers.head_input`, `[num_logit_rows, hidden_size]`.
    pub(crate) fn norm_wanted(&self, pass: &Pass<'_>, buffers: &mut Buffers) {
        let hidden_size = self.weight.k();
        let wanted_len = pass.logit_rows.len() * hidden_size;

        // 1. The wanted rows                                   [R, hidden_size]
        let wanted = buffers.branch.sized(wanted_len);
        for (&row, wanted) in pass
            .logit_rows
            .iter()
            .zip(wanted.chunks_exact_mut(hidden_size))
        {
            wanted.copy_from_slice(
                &buffers.hidden.get()[row as usize * hidden_size..][..hidden_size],
            );
        }
        // 2. h = RMSNorm(x)                                    [R, hidden_size]
        let normed = buffers.head_input.sized(wanted_len);
        self.norm.forward(pass.cx, wanted, normed);
    }

    /// Logits of the rows `wanted` of `buffers.head_input`, `[wanted.len(), vocab_size]`.
    ///
    /// # Panics
    /// If [`LmHead::norm_wanted`] left fewer rows.
    pub(crate) fn logits(
        &self,
        cx: &Compute,
        wanted: Range<usize>,
        buffers: &mut Buffers,
    ) -> Vec<f32> {
        let hidden_size = self.weight.k();
        let normed =
            &buffers.head_input.get()[wanted.start * hidden_size..wanted.end * hidden_size];

        // 3. logits = W_head h, from 16-bit activations in either profile   [R, vocab_size]
        let mut logits = vec![0.0; wanted.len() * self.weight.n()];
        let h = Activations::with_buffer(
            cx,
            normed,
            hidden_size,
            ActivationProfile::A16,
            std::mem::take(&mut buffers.quantized),
        );
        self.weight.forward(cx, &h, None, &mut logits);
        buffers.quantized = h.into_buffer();
        if let Some(cap) = self.softcap {
            softcap(cx, &mut logits, cap);
        }
        logits
    }
}
