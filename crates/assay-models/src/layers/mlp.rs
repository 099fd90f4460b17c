//! The gated feed-forward block: `down(act(gate(h)) * up(h))`.

use super::linear::{Destination, Linear, forward_all};
use crate::backend::Backend;
use crate::pass::{Buffers, Pass};

/// What the gate goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activation {
    /// `x * sigmoid(x)`.
    Silu,
    /// GELU in its tanh form.
    GeluTanh,
}

/// Weights of one feed-forward block.
#[derive(Debug)]
pub(crate) struct GatedMlp<B: Backend> {
    /// `[intermediate_size, hidden_size]`.
    pub(crate) gate_proj: Linear<B>,
    /// `[intermediate_size, hidden_size]`.
    pub(crate) up_proj: Linear<B>,
    /// `[hidden_size, intermediate_size]`.
    pub(crate) down_proj: Linear<B>,
    pub(crate) activation: Activation,
}

impl<B: Backend> GatedMlp<B> {
    /// From `buffers.normed` to `to`, both `[T, hidden_size]`.
    pub(crate) fn forward(&self, pass: &Pass<'_, B>, buffers: &mut Buffers<B>, to: Destination) {
        let (backend, num_tokens) = (pass.backend, pass.num_tokens());
        let (gate, up, gated) = (&mut buffers.gate, &mut buffers.up, &mut buffers.gated);

        // 1. gate, up = W_gate h, W_up h                       [T, intermediate_size]
        let h = pass.input(&buffers.normed, self.gate_proj.k(), &mut buffers.quantized);
        let projections = [(&self.gate_proj, &mut *gate), (&self.up_proj, &mut *up)];
        forward_all(backend, &h, num_tokens, projections);
        buffers.quantized = B::into_buffer(h);

        // 2. act(gate) * up                                    [T, intermediate_size]
        let n = self.gate_proj.n();
        backend.resize(gated, num_tokens * n);
        match self.activation {
            Activation::Silu => backend.silu_mul(gate, up, n, gated),
            Activation::GeluTanh => backend.gelu_mul(gate, up, n, gated),
        }

        // 3. W_down                                            [T, hidden_size]
        let gated = pass.input(gated, self.down_proj.k(), &mut buffers.quantized);
        let (hidden, branch) = (&mut buffers.hidden, &mut buffers.branch);
        match to {
            Destination::Branch => self.down_proj.forward(backend, &gated, num_tokens, branch),
            Destination::Hidden => {
                self.down_proj
                    .forward_onto(backend, &gated, num_tokens, hidden, branch);
            }
        }
        buffers.quantized = B::into_buffer(gated);
    }
}
