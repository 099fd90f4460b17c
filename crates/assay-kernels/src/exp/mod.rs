//! EXP: the one f32 exponential behind attention, SwiGLU, GELU and soft-caps.
//!
//! Class: Exact. Within 1.01 ulp of e^x on -87..=88, +0 below, NaN for NaN.

pub(crate) mod constants;
mod vector;

pub(crate) use vector::{exp_clamped, exp_lanes};

use constants::{
    EXP_HIGHEST, EXP_LOG2E, EXP_LOWEST, EXP_NEG_LN2_HI, EXP_NEG_LN2_LO, EXP_P, EXP_ROUNDER,
};

/// EXP(x) of the numerics contract.
///
/// Below −87 it is +0, above 88 it is +infinity, and NaN stays NaN.
#[inline]
pub fn exp(x: f32) -> f32 {
    if x.is_nan() {
        return x;
    }
    if x < EXP_LOWEST {
        return 0.0;
    }
    if x > EXP_HIGHEST {
        return f32::INFINITY;
    }
    let shifted = x.mul_add(EXP_LOG2E, EXP_ROUNDER);
    let n = shifted - EXP_ROUNDER;
    let r = n.mul_add(EXP_NEG_LN2_LO, n.mul_add(EXP_NEG_LN2_HI, x));
    let p = EXP_P[1..].iter().fold(EXP_P[0], |p, &c| p.mul_add(r, c));
    let y = (r * r).mul_add(p, r) + 1.0;
    // The low bits of `shifted` hold n in two's complement; the shift leaves nothing else.
    f32::from_bits(y.to_bits().wrapping_add(shifted.to_bits() << 23))
}
