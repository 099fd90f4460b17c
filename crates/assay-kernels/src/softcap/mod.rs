//! Soft-cap: `cap * tanh(x / cap)`, for the models that bound their scores or logits.
//!
//! Class: Exact. In this order, each step rounded: `u = x / cap`, `e = EXP(clamp(2·u, ±87))`,
//! `t = 1 - 2 / (1 + e)`, `cap·t`.

use crate::Compute;
use crate::exp::exp;

/// Replaces each `x[i]` by its soft-capped value; `cap` is positive.
pub fn softcap(cx: &Compute, x: &mut [f32], cap: f32) {
    let _ = cx;
    for x in x {
        *x = softcap_one(*x, cap);
    }
}

pub(crate) fn softcap_one(x: f32, cap: f32) -> f32 {
    let e = exp((2.0 * (x / cap)).clamp(-87.0, 87.0));
    cap * (1.0 - 2.0 / (1.0 + e))
}
