//! SwiGLU's gate: `silu(gate) * up`.
//!
//! Class: Exact. `rn(rn(g / rn(1 + EXP(clamp(-g, ±87)))) * u)`, element by element.

use crate::Compute;
use crate::exp::exp;

/// Writes `silu(gate[i]) * up[i]` to `out[i]`.
///
/// # Panics
/// If the three lengths differ.
pub fn silu_mul(cx: &Compute, gate: &[f32], up: &[f32], out: &mut [f32]) {
    assert_eq!(gate.len(), up.len(), "gate and up differ in length");
    assert_eq!(gate.len(), out.len(), "gate and out differ in length");
    let _ = cx;
    for ((&g, &u), out) in gate.iter().zip(up).zip(out) {
        *out = silu(g) * u;
    }
}

fn silu(g: f32) -> f32 {
    g / (1.0 + exp((-g).clamp(-87.0, 87.0)))
}
