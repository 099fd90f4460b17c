//! GeGLU's gate: `gelu(gate) * up`, with the tanh form of GELU.
//!
//! Class: Exact. In this order, each step rounded: `x3 = (x·x)·x`, `t = x + 0.044715·x3`, `u = 0.79788456·t`,
//! `gelu = x / (1 + EXP(clamp(-2u, ±87)))`, then `gelu·up`.

use crate::Compute;
use crate::exp::constants::{GELU_CUBIC, GELU_SLOPE};
use crate::exp::exp;

/// Writes `gelu(gate[i]) * up[i]` to `out[i]`.
///
/// # Panics
/// If the three lengths differ.
pub fn gelu_mul(cx: &Compute, gate: &[f32], up: &[f32], out: &mut [f32]) {
    assert_eq!(gate.len(), up.len(), "gate and up differ in length");
    assert_eq!(gate.len(), out.len(), "gate and out differ in length");
    let _ = cx;
    for ((&x, &u), out) in gate.iter().zip(up).zip(out) {
        *out = gelu(x) * u;
    }
}

fn gelu(x: f32) -> f32 {
    let u = GELU_SLOPE * (x + GELU_CUBIC * (x * x * x));
    x / (1.0 + exp((-2.0 * u).clamp(-87.0, 87.0)))
}
