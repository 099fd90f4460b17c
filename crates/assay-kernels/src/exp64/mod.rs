//! EXP64 and LN64: the f64 exponential and logarithm of log-probabilities and of sampling.
//!
//! Class: Exact. Both within 1 ulp; no libm, so that every device and every C library agrees. EXP64 is EXP's reduction
//! in f64 and the Taylor series to 1/13!, by fma from the highest power down to `fma(fma(y, r, 1), r, 1)`.

pub(crate) mod golden;
mod slice;
mod vector;

pub use slice::exp64_slice;
pub(crate) use vector::exp64_lanes;

use crate::numerics::{
    EXP64_HIGHEST, EXP64_LN2_HI, EXP64_LN2_LO, EXP64_LOWEST, F64_ATANH_SERIES, F64_EXP_TAYLOR,
    F64_LN2_HI, F64_LN2_LO, F64_LOG2_E, F64_ROUND_MAGIC, F64_SQRT_HALF,
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
    let shifted = x.mul_add(F64_LOG2_E, F64_ROUND_MAGIC);
    let n = shifted - F64_ROUND_MAGIC;
    let r = n.mul_add(-EXP64_LN2_LO, n.mul_add(-EXP64_LN2_HI, x));
    let y = horner(&F64_EXP_TAYLOR, r).mul_add(r, 1.0).mul_add(r, 1.0);
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
    // x = 2^k * f with f in [√½, √2).
    let above = normal.to_bits().wrapping_sub(F64_SQRT_HALF.to_bits()) as i64;
    let exponent = above >> 52;
    let f = f64::from_bits(normal.to_bits().wrapping_sub((exponent << 52) as u64));
    let k = (exponent + shift) as f64;
    // ln f = 2 atanh(s) with s = u / (2 + u), arranged so that the leading u is exact:
    // 2 atanh(s) = u - (u²/2 - s (u²/2 + R)), R = 2 s² (1/3 + 1/5 s² + …).
    let u = f - 1.0;
    let s = u / (2.0 + u);
    let z = s * s;
    let series = 2.0 * horner(&F64_ATANH_SERIES, z);
    let half_square = 0.5 * u * u;
    let tail = s.mul_add(z.mul_add(series, half_square), k * F64_LN2_LO);
    k.mul_add(F64_LN2_HI, u - (half_square - tail))
}

/// The polynomial of `coefficients`, lowest power first, by fma from the highest.
#[inline]
fn horner(coefficients: &[f64], x: f64) -> f64 {
    coefficients
        .iter()
        .rev()
        .copied()
        .reduce(|sum, c| sum.mul_add(x, c))
        .unwrap_or(0.0)
}
