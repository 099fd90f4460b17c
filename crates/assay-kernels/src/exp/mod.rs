//! EXP: the one f32 exponential behind attention, SwiGLU, GELU and soft-caps.
//!
//! Class: Exact. Within 1.01 ulp of e^x on -87..=88, +0 below, NaN for NaN. `n = fma(x, log2e, 1.5·2^23) - 1.5·2^23`,
//! `r = fma(n, -ln2_lo, fma(n, -ln2_hi, x))`, p by fma from its highest power, `y = fma(r·r, p, r) + 1`, then n is
//! added to y's exponent.

mod vector;

pub(crate) use vector::{exp_clamped, exp_lanes};

use crate::numerics::{
    EXP_HIGHEST, EXP_LOWEST, EXP_P, F32_LN2_HI, F32_LN2_LO, F32_LOG2_E, F32_ROUND_MAGIC,
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
    let shifted = x.mul_add(F32_LOG2_E, F32_ROUND_MAGIC);
    let n = shifted - F32_ROUND_MAGIC;
    let r = n.mul_add(-F32_LN2_LO, n.mul_add(-F32_LN2_HI, x));
    let p = EXP_P
        .iter()
        .rev()
        .copied()
        .reduce(|p, c| p.mul_add(r, c))
        .unwrap_or(0.0);
    let y = (r * r).mul_add(p, r) + 1.0;
    // The low bits of `shifted` hold n in two's complement; the shift leaves nothing else.
    f32::from_bits(y.to_bits().wrapping_add(shifted.to_bits() << 23))
}
