//! SwiGLU's gate: `silu(gate) * up`.
//!
//! Class: Exact. `rn(rn(g / rn(1 + EXP(clamp(-g, ±87)))) * u)`, element by element.

pub mod cuda;
pub(crate) mod golden;

use crate::Compute;
use crate::exp::{exp, exp_clamped};
use crate::gate::{Activation, gate_mul};
use crate::simd::Simd;

/// Writes `silu(gate[i]) * up[i]` to `out[i]`.
///
/// # Panics
/// If the three lengths differ.
pub fn silu_mul(cx: &Compute, gate: &[f32], up: &[f32], out: &mut [f32]) {
    gate_mul(cx, Silu, gate, up, out);
}

#[derive(Clone, Copy)]
struct Silu;

impl Activation for Silu {
    fn scalar(self, x: f32) -> f32 {
        x / (1.0 + exp((-x).clamp(-87.0, 87.0)))
    }

    #[inline(always)]
    fn lanes<S: Simd>(self, simd: S, x: S::F32) -> S::F32 {
        let e = exp_clamped(simd, simd.neg(x));
        simd.div(x, simd.add(simd.splat(1.0), e))
    }
}
