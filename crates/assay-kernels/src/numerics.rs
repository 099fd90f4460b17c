//! The numerics contract "n1": lane count, summation order and every constant, as bit patterns.
//!
//! This file defines **results**. The scalar reference of each op follows it literally, and the AVX2,
//! AVX-512 and device paths must give the same bits. The constants below *are* the contract: changing one
//! bit changes [`CONTRACT_VERSION`] and every golden hash.
//!
//! Rules that hold everywhere: one rounding per named operation; `fma` only where written; round to
//! nearest, ties to even; subnormals are kept; sums start at +0; no libm, no approximation
//! instruction. A NaN may carry any payload; it is canonicalised before it is hashed.

use half::f16;
use std::ops::Add;

/// Name of this contract; part of the system fingerprint.
pub const CONTRACT_VERSION: &str = "n1";

// ---- Summation -----------------------------------------------------------------------------------

/// Virtual lanes of [`sum32`]; element `i` belongs to lane `i mod 32` on every machine.
pub const SUM_LANES: usize = 32;

/// Elements of one summation chunk; chunk sums are added in ascending order.
pub const SUM_CHUNK: usize = 1024;

const _: () = assert!(SUM_CHUNK.is_multiple_of(SUM_LANES));

/// SUM32: folds `len` terms in the order of the contract.
///
/// `step(acc, i)` adds term `i` to a lane (for instance `x[i].mul_add(x[i], acc)`). Inside a chunk of
/// [`SUM_CHUNK`], lane `l` takes the terms `i ≡ l (mod 32)` ascending from +0; then [`sum_lanes`]
/// folds the lanes; then chunk sums are added ascending to +0. An empty sum is +0.
pub fn sum32<T>(len: usize, mut step: impl FnMut(T, usize) -> T) -> T
where
    T: Copy + Default + Add<Output = T>,
{
    let mut total = T::default();
    for start in (0..len).step_by(SUM_CHUNK) {
        let end = len.min(start + SUM_CHUNK);
        let mut lanes = [T::default(); SUM_LANES];
        for i in start..end {
            let lane = &mut lanes[i % SUM_LANES];
            *lane = step(*lane, i);
        }
        total = total + sum_lanes(lanes);
    }
    total
}

/// Folds 32 lanes by halves: lane `l` takes lane `l + 16`, then `l + 8`, `l + 4`, `l + 2`, `l + 1`.
pub fn sum_lanes<T>(mut lanes: [T; SUM_LANES]) -> T
where
    T: Copy + Add<Output = T>,
{
    for width in [16, 8, 4, 2, 1] {
        for l in 0..width {
            lanes[l] = lanes[l] + lanes[l + width];
        }
    }
    lanes[0]
}

// ---- Matrix product ------------------------------------------------------------------------------

/// Elements of K in one level-1 chain; its sum is added to the output, blocks ascending.
pub const MATMUL_BLOCK: usize = 256;

// ---- 16-bit floats -------------------------------------------------------------------------------

/// Largest finite f16; stored keys and values saturate here.
pub const F16_MAX: f32 = 65504.0;

/// The value of f16 `bits`; exact, subnormals included.
#[inline]
pub fn f16_to_f32(bits: u16) -> f32 {
    f16::from_bits(bits).to_f32()
}

/// The f16 nearest to `value` (ties to even), as bits; overflow gives infinity.
#[inline]
pub fn f32_to_f16(value: f32) -> u16 {
    f16::from_f32(value).to_bits()
}

/// The f16 nearest to `value`, saturating at ±[`F16_MAX`]; NaN stays NaN.
#[inline]
pub fn f32_to_f16_saturating(value: f32) -> u16 {
    // Not `clamp`-then-convert by chance: `f32::clamp` returns NaN for NaN, which is wanted here.
    f32_to_f16(value.clamp(-F16_MAX, F16_MAX))
}

/// The value of bfloat16 `bits`; exact, being the upper half of an f32.
#[inline]
pub fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// The one NaN that hashes and recorded outputs contain.
pub const CANONICAL_NAN_BITS: u32 = 0x7FC0_0000;

/// The bits of `value`, with every NaN replaced by [`CANONICAL_NAN_BITS`].
#[inline]
pub fn canonical_bits(value: f32) -> u32 {
    if value.is_nan() {
        CANONICAL_NAN_BITS
    } else {
        value.to_bits()
    }
}

// ---- f32: exponential and GELU -------------------------------------------------------------------

/// EXP below this is +0.
pub const EXP_LOWEST: f32 = -87.0;
/// EXP above this is +infinity; no op goes there, so vector paths need not look.
pub const EXP_HIGHEST: f32 = 88.0;
/// 1.5·2^23: adding it rounds an f32 to an integer, which then stands in the low bits.
pub const F32_ROUND_MAGIC: f32 = f32::from_bits(0x4B40_0000);
/// log2(e), nearest f32.
pub const F32_LOG2_E: f32 = f32::from_bits(0x3FB8_AA3B);
/// ln 2, nearest f32; `fma(n, -F32_LN2_HI, x)` is exact in EXP.
pub const F32_LN2_HI: f32 = f32::from_bits(0x3F31_7218);
/// ln 2 − [`F32_LN2_HI`], nearest f32; it is negative.
pub const F32_LN2_LO: f32 = f32::from_bits(0xB102_E308);
/// EXP's `p(r)`, lowest power first: a minimax fit of `(e^r − 1 − r) / r²` on |r| ≤ ln 2 / 2 with the error
/// weighed as EXP's relative error, coefficients rounded to f32 one by one and the rest refitted. The fit
/// adds 0.0016 units of 2^-24.
pub const EXP_P: [f32; 6] = [
    f32::from_bits(0x3F00_0000),
    f32::from_bits(0x3E2A_AAAA),
    f32::from_bits(0x3D2A_AA74),
    f32::from_bits(0x3C08_8987),
    f32::from_bits(0x3AB6_A660),
    f32::from_bits(0x394E_FDE4),
];
/// √(2/π) of GELU's tanh form, as models were trained with it: 0.79788456.
pub const GELU_SLOPE: f32 = f32::from_bits(0x3F4C_422A);
/// 0.044715 of GELU's tanh form.
pub const GELU_CUBIC: f32 = f32::from_bits(0x3D37_2713);

// ---- f64: exponential and logarithm --------------------------------------------------------------

/// 1.5·2^52: adding and subtracting it rounds an f64 of magnitude below 2^51 to an integer, ties to even.
pub const F64_ROUND_MAGIC: f64 = f64::from_bits(0x4338_0000_0000_0000);
/// log2(e), nearest f64.
pub const F64_LOG2_E: f64 = f64::from_bits(0x3FF7_1547_652B_82FE);
/// The upper 32 bits of ln 2; `n * F64_LN2_HI` is exact for |n| < 2^21.
pub const F64_LN2_HI: f64 = f64::from_bits(0x3FE6_2E42_FEE0_0000);
/// ln 2 − [`F64_LN2_HI`], nearest f64.
pub const F64_LN2_LO: f64 = f64::from_bits(0x3DEA_39EF_3579_3C76);
/// EXP64 below this is +0.
pub const EXP64_LOWEST: f64 = -708.0;
/// EXP64 above this is +infinity; no op goes there, so vector paths need not look.
pub const EXP64_HIGHEST: f64 = 709.0;
/// ln 2, nearest f64; `fma(n, -EXP64_LN2_HI, x)` is exact in EXP64.
pub const EXP64_LN2_HI: f64 = f64::from_bits(0x3FE6_2E42_FEFA_39EF);
/// ln 2 − [`EXP64_LN2_HI`], nearest f64.
pub const EXP64_LN2_LO: f64 = f64::from_bits(0x3C7A_BC9E_3B39_803F);
/// √½, nearest f64: LN64's mantissas lie from it up to twice it.
pub const F64_SQRT_HALF: f64 = f64::from_bits(0x3FE6_A09E_667F_3BCD);
/// √2, nearest f64: mantissas at or above it are halved before the logarithm's series.
pub const F64_SQRT_2: f64 = f64::from_bits(0x3FF6_A09E_667F_3BCD);

/// Taylor coefficients 1/k! of exp, k = 2..=13.
pub const F64_EXP_TAYLOR: [f64; 12] = [
    f64::from_bits(0x3FE0_0000_0000_0000),
    f64::from_bits(0x3FC5_5555_5555_5555),
    f64::from_bits(0x3FA5_5555_5555_5555),
    f64::from_bits(0x3F81_1111_1111_1111),
    f64::from_bits(0x3F56_C16C_16C1_6C17),
    f64::from_bits(0x3F2A_01A0_1A01_A01A),
    f64::from_bits(0x3EFA_01A0_1A01_A01A),
    f64::from_bits(0x3EC7_1DE3_A556_C734),
    f64::from_bits(0x3E92_7E4F_B778_9F5C),
    f64::from_bits(0x3E5A_E645_67F5_44E4),
    f64::from_bits(0x3E21_EED8_EFF8_D898),
    f64::from_bits(0x3DE6_1246_13A8_6D09),
];

/// Coefficients 1/(2k+1) of the series atanh(s)/s in s², k = 1..=11.
pub const F64_ATANH_SERIES: [f64; 11] = [
    f64::from_bits(0x3FD5_5555_5555_5555),
    f64::from_bits(0x3FC9_9999_9999_999A),
    f64::from_bits(0x3FC2_4924_9249_2492),
    f64::from_bits(0x3FBC_71C7_1C71_C71C),
    f64::from_bits(0x3FB7_45D1_745D_1746),
    f64::from_bits(0x3FB3_B13B_13B1_3B14),
    f64::from_bits(0x3FB1_1111_1111_1111),
    f64::from_bits(0x3FAE_1E1E_1E1E_1E1E),
    f64::from_bits(0x3FAA_F286_BCA1_AF28),
    f64::from_bits(0x3FA8_6186_1861_8618),
    f64::from_bits(0x3FA6_42C8_590B_2164),
];

// ---- f64: sine and cosine (rotary tables) ----------------------------------------------------------

/// 2/π, nearest f64.
pub const F64_FRAC_2_PI: f64 = f64::from_bits(0x3FE4_5F30_6DC9_C883);
/// π/2, nearest f64; the reduction's first step `fma(-n, PI_2_HI, x)` is exact.
pub const F64_PI_2_HI: f64 = f64::from_bits(0x3FF9_21FB_5444_2D18);
/// π/2 − [`F64_PI_2_HI`], nearest f64.
pub const F64_PI_2_LO: f64 = f64::from_bits(0x3C91_A626_3314_5C07);

/// Taylor coefficients (−1)^k/(2k+1)! of sin(r)/r in r², k = 1..=8.
pub const F64_SIN_TAYLOR: [f64; 8] = [
    f64::from_bits(0xBFC5_5555_5555_5555),
    f64::from_bits(0x3F81_1111_1111_1111),
    f64::from_bits(0xBF2A_01A0_1A01_A01A),
    f64::from_bits(0x3EC7_1DE3_A556_C734),
    f64::from_bits(0xBE5A_E645_67F5_44E4),
    f64::from_bits(0x3DE6_1246_13A8_6D09),
    f64::from_bits(0xBD6A_E7F3_E733_B81F),
    f64::from_bits(0x3CE9_52C7_7030_AD4A),
];

/// Taylor coefficients (−1)^k/(2k)! of cos(r) in r², k = 1..=8.
pub const F64_COS_TAYLOR: [f64; 8] = [
    f64::from_bits(0xBFE0_0000_0000_0000),
    f64::from_bits(0x3FA5_5555_5555_5555),
    f64::from_bits(0xBF56_C16C_16C1_6C17),
    f64::from_bits(0x3EFA_01A0_1A01_A01A),
    f64::from_bits(0xBE92_7E4F_B778_9F5C),
    f64::from_bits(0x3E21_EED8_EFF8_D898),
    f64::from_bits(0xBDA9_3974_A8C0_7C9D),
    f64::from_bits(0x3D2A_E7F3_E733_B81F),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sum32_order_is_lanes_then_tree_then_chunks() {
        // One huge term per chunk absorbs the small ones of its own lane only, so any other order shows.
        let x: Vec<f32> = (0..2500u32)
            .map(|i| {
                if i % 1024 == 7 {
                    1.0e8
                } else {
                    1.0 + (i % 13) as f32
                }
            })
            .collect();
        let got = sum32(x.len(), |acc: f32, i| acc + x[i]);
        let mut total = 0.0f32;
        for chunk in x.chunks(1024) {
            let mut lane = vec![0.0f32; 32];
            for (l, lane) in lane.iter_mut().enumerate() {
                for v in chunk.iter().skip(l).step_by(32) {
                    *lane += v;
                }
            }
            while lane.len() > 1 {
                let upper = lane.split_off(lane.len() / 2);
                for (a, b) in lane.iter_mut().zip(upper) {
                    *a += b;
                }
            }
            total += lane[0];
        }
        assert_eq!(got.to_bits(), total.to_bits());
        let straight: f32 = x.iter().sum();
        assert_ne!(
            got.to_bits(),
            straight.to_bits(),
            "the case must tell orders apart"
        );
    }

    #[test]
    fn empty_sum_is_plus_zero() {
        assert_eq!(sum32(0, |acc: f32, _| acc).to_bits(), 0);
    }

    #[test]
    fn every_f16_survives_the_round_trip() {
        for bits in 0..=u16::MAX {
            let value = f16_to_f32(bits);
            if !value.is_nan() {
                assert_eq!(f32_to_f16(value), bits, "f16 {bits:#06x}");
            }
        }
        assert_eq!(f16_to_f32(1), 2.0f32.powi(-24));
        assert_eq!(bf16_to_f32(1).to_bits(), 0x0001_0000);
    }

    #[test]
    fn f16_rounds_to_even_and_saturates() {
        assert_eq!(f32_to_f16(1.0 + 2.0f32.powi(-11)), 0x3C00);
        assert_eq!(f32_to_f16(1.0 + 3.0 * 2.0f32.powi(-11)), 0x3C02);
        assert_eq!(f32_to_f16(65520.0), 0x7C00);
        assert_eq!(f32_to_f16_saturating(65520.0), 0x7BFF);
        assert_eq!(f32_to_f16_saturating(f32::NEG_INFINITY), 0xFBFF);
        assert!(f16_to_f32(f32_to_f16_saturating(f32::NAN)).is_nan());
    }
}
