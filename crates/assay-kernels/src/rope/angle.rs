//! Angles in f64: a power of theta for the frequency, then sine and cosine, from our own polynomials.
//!
//! Every fma is explicit, so compiling this for a machine with or without the instruction gives the same bits.

use crate::numerics::{
    F64_ATANH_SERIES, F64_COS_TAYLOR, F64_EXP_TAYLOR, F64_FRAC_2_PI, F64_LN2_HI, F64_LN2_LO,
    F64_LOG2_E, F64_PI_2_HI, F64_PI_2_LO, F64_ROUND_MAGIC, F64_SIN_TAYLOR, F64_SQRT_2,
};

/// Largest angle that [`sin_cos`] reduces to full accuracy.
pub(super) const MAX_ANGLE: f64 = (1u64 << 30) as f64;

/// `base ^ -(numerator / denominator)` for a normal base > 0 and an exponent between −1 and 0.
pub(super) fn negative_power(base: f64, numerator: usize, denominator: usize) -> f64 {
    exp(-(numerator as f64 / denominator as f64 * ln(base)))
}

/// Natural logarithm of a positive, normal `x`.
fn ln(x: f64) -> f64 {
    const MANTISSA: u64 = (1 << 52) - 1;
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i64 - 1023;
    let mut mantissa = f64::from_bits(bits & MANTISSA | 1023 << 52);
    if mantissa >= F64_SQRT_2 {
        mantissa *= 0.5;
        exponent += 1;
    }
    let exponent = exponent as f64;
    // ln m = 2 atanh(s), |s| <= 0.172; the leading 2s is added last, where it decides the rounding.
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let s2 = s * s;
    let tail = horner(&F64_ATANH_SERIES, s2) * s2;
    let twice_s = 2.0 * s;
    let low = twice_s.mul_add(tail, exponent * F64_LN2_LO);
    exponent.mul_add(F64_LN2_HI, twice_s + low)
}

/// e^x for |x| <= 708.
fn exp(x: f64) -> f64 {
    let n = x.mul_add(F64_LOG2_E, F64_ROUND_MAGIC) - F64_ROUND_MAGIC;
    let r = (-n).mul_add(F64_LN2_LO, (-n).mul_add(F64_LN2_HI, x));
    let value = 1.0 + (r * r).mul_add(horner(&F64_EXP_TAYLOR, r), r);
    // n is a small integer, so the exponent add stays among normal numbers.
    f64::from_bits(value.to_bits().wrapping_add((n as i64 as u64) << 52))
}

/// Sine and cosine of an angle of at most ±[`MAX_ANGLE`].
#[inline(always)]
pub(super) fn sin_cos(angle: f64) -> (f64, f64) {
    let n = angle.mul_add(F64_FRAC_2_PI, F64_ROUND_MAGIC) - F64_ROUND_MAGIC;
    // The first step is exact: the difference is a multiple of 2^-52 below 1.
    let r = (-n).mul_add(F64_PI_2_LO, (-n).mul_add(F64_PI_2_HI, angle));
    let r2 = r * r;
    let sin = (r * r2).mul_add(horner(&F64_SIN_TAYLOR, r2), r);
    let cos = r2.mul_add(horner(&F64_COS_TAYLOR, r2), 1.0);
    match n as i64 & 3 {
        0 => (sin, cos),
        1 => (cos, -sin),
        2 => (-sin, -cos),
        _ => (-cos, sin),
    }
}

/// `c[0] + c[1]·x + c[2]·x² + …` by fma, highest first.
#[inline(always)]
fn horner<const N: usize>(coefficients: &[f64; N], x: f64) -> f64 {
    let mut value = coefficients[N - 1];
    for &c in coefficients[..N - 1].iter().rev() {
        value = value.mul_add(x, c);
    }
    value
}

#[cfg(test)]
mod tests;
