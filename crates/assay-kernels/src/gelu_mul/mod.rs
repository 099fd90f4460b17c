//! GeGLU's gate: `gelu(gate) * up`, with the tanh form of GELU.
//!
//! Class: Exact. In this order, each step rounded: `x3 = (x·x)·x`, `t = x + 0.044715·x3`, `u = 0.79788456·t`,
//! `gelu = x / (1 + EXP(clamp(-2u, ±87)))`, then `gelu·up`.

pub mod cuda;
pub(crate) mod golden;

use crate::Compute;
use crate::exp::{exp, exp_clamped};
use crate::gate::{Activation, gate_mul};
use crate::numerics::{GELU_CUBIC, GELU_SLOPE};
use crate::simd::Simd;

/// Writes `gelu(gate[i]) * up[i]` to `out[i]`.
///
/// # Panics
/// If the three lengths differ.
pub fn gelu_mul(cx: &Compute, gate: &[f32], up: &[f32], out: &mut [f32]) {
    gate_mul(cx, Gelu, gate, up, out);
}

#[derive(Clone, Copy)]
struct Gelu;

impl Activation for Gelu {
    fn scalar(self, x: f32) -> f32 {
        let u = GELU_SLOPE * (x + GELU_CUBIC * ((x * x) * x));
        x / (1.0 + exp((-2.0 * u).clamp(-87.0, 87.0)))
    }

    #[inline(always)]
    fn lanes<S: Simd>(self, simd: S, x: S::F32) -> S::F32 {
        let x3 = simd.mul(simd.mul(x, x), x);
        let t = simd.add(x, simd.mul(simd.splat(GELU_CUBIC), x3));
        let u = simd.mul(simd.splat(GELU_SLOPE), t);
        let e = exp_clamped(simd, simd.mul(simd.splat(-2.0), u));
        simd.div(x, simd.add(simd.splat(1.0), e))
    }
}
