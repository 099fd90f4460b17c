//! The gated feed-forward block: `down(act(gate(h)) * up(h))`.

use assay_kernels::gelu_mul::gelu_mul;
use assay_kernels::silu_mul::silu_mul;

use super::linear::Linear;
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
pub(crate) struct GatedMlp {
    /// `[intermediate_size, hidden_size]`.
    pub(crate) gate_proj: Linear,
    /// `[intermediate_size, hidden_size]`.
    pub(crate) up_proj: Linear,
    /// `[hidden_size, intermediate_size]`.
    pub(crate) down_proj: Linear,
    pub(crate) activation: Activation,
}

impl GatedMlp {
    /// From `buffers.normed` to `buffers.branch`, both `[T, hidden_size]`.
    pub(crate) fn forward(&self, pass: &Pass<'_>, buffers: &mut Buffers) {
        let cx = pass.cx;
        let intermediate_len = pass.num_tokens() * self.gate_proj.n();
        let hidden_len = pass.num_tokens() * self.down_proj.n();
        let gate = buffers.gate.sized(intermediate_len);
        let up = buffers.up.sized(intermediate_len);
        let gated = buffers.gated.sized(intermediate_len);

        // 1. gate, up = W_gate h, W_up h                       [T, intermediate_size]
        let h = pass.activations(
            buffers.normed.get(),
            self.gate_proj.k(),
            &mut buffers.quantized,
        );
        self.gate_proj.forward(cx, &h, gate);
        self.up_proj.forward(cx, &h, up);
        buffers.quantized = h.into_buffer();

        // 2. act(gate) * up                                    [T, intermediate_size]
        match self.activation {
            Activation::Silu => silu_mul(cx, gate, up, gated),
            Activation::GeluTanh => gelu_mul(cx, gate, up, gated),
        }

        // 3. W_down                                            [T, hidden_size]
        let gated = pass.activations(gated, self.down_proj.k(), &mut buffers.quantized);
        self.down_proj
            .forward(cx, &gated, buffers.branch.sized(hidden_len));
        buffers.quantized = gated.into_buffer();
    }
}
