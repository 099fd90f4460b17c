//! EXP64 and LN64: the f64 exponential and logarithm of log-probabilities and of sampling.
//!
//! Class: Exact. Both within 1 ulp; no libm, so that every device and every C library agrees.

mod vector;

pub(crate) use vector::exp64_lanes;

use crate::exp::constants::{
    EXP64_HIGHEST, EXP64_LOG2E, EXP64_LOWEST, EXP64_NEG_LN2_HI, EXP64_NEG_LN2_LO, EXP64_ROUNDER,
    EXP64_TAYLOR, LN64_ATANH, LN64_LN2_HI, LN64_LN2_LO,
};

/// EXP64(x) of the numerics contract.
///
/// Below −708 it is +0, above 709 it is +infinity, and NaN stays NaN.
#[inline]
pub fn exp64(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    if x < EXP64_LOWEST {
        return 0.0;
    }
    if x > EXP64_HIGHEST {
        return f64::INFINITY;
    }
    let shifted = x.mul_add(EXP64_LOG2E, EXP64_ROUNDER);
    let n = shifted - EXP64_ROUNDER;
    let r = n.mul_add(EXP64_NEG_LN2_LO, n.mul_add(EXP64_NEG_LN2_HI, x));
    let y = EXP64_TAYLOR[1..]
        .iter()
        .fold(EXP64_TAYLOR[0], |y, &c| y.mul_add(r, c));
    // The low bits of `shifted` hold n in two's complement; the shift leaves nothing else.
    f64::from_bits(y.to_bits().wrapping_add(shifted.to_bits() << 52))
}

/// LN64(x) of the numerics contract: the natural logarithm.
///
/// −infinity at ±0, NaN below zero and for NaN, +infinity at +infinity.
pub fn ln64(x: f64) -> f64 {
    if x.is_nan() || x < 0.0 {
        return f64::NAN;
    }
    if x == 0.0 {
        return f64::NEG_INFINITY;
    }
    if x == f64::INFINITY {
        return x;
    }
    let (normal, shift) = if x < f64::MIN_POSITIVE {
        (x * f64::from_bits(0x4350_0000_0000_0000), -54)
    } else {
        (x, 0)
    };
    // x = 2^k * f with f in [0.70710678, 1.41421356): measured from the bits of sqrt(1/2).
    const SQRT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
    let above = normal.to_bits().wrapping_sub(SQRT_HALF) as i64;
    let exponent = above >> 52;
    let f = f64::from_bits(normal.to_bits().wrapping_sub((exponent << 52) as u64));
    let k = (exponent + shift) as f64;
    // ln f = 2 atanh(s) with s = u / (2 + u), arranged so that the leading u is exact:
    // 2 atanh(s) = u - (u²/2 - s (u²/2 + R)), R = s²·(2/3 + 2/5 s² + …).
    let u = f - 1.0;
    let s = u / (2.0 + u);
    let z = s * s;
    let series = LN64_ATANH[1..]
        .iter()
        .fold(LN64_ATANH[0], |p, &c| p.mul_add(z, c));
    let half_square = 0.5 * u * u;
    let tail = s.mul_add(z.mul_add(series, half_square), k * LN64_LN2_LO);
    k.mul_add(LN64_LN2_HI, u - (half_square - tail))
}
