//! Bit patterns of EXP, EXP64 and LN64. They are part of the numerics contract: moving one moves results.
//!
//! Coefficients of EXP are a weighted minimax fit of `(e^r - 1 - r) / r^2` on `|r| <= ln2 / 2`, rounded one
//! by one to f32 with the rest refitted (0.0016 units of 2^-24 away from the true function). Those of EXP64
//! are `1/i!`, those of LN64 `2/(2i + 1)`, each rounded to nearest.

/// EXP below this is +0.
pub(crate) const EXP_LOWEST: f32 = -87.0;
/// EXP above this is +infinity; the vector paths are never given such a number.
pub(crate) const EXP_HIGHEST: f32 = 88.0;
/// `log2(e)`.
pub(crate) const EXP_LOG2E: f32 = f32::from_bits(0x3fb8_aa3b);
/// `1.5 * 2^23`: adding it rounds to an integer that then sits in the low bits.
pub(crate) const EXP_ROUNDER: f32 = f32::from_bits(0x4b40_0000);
/// `-ln(2)`, the high part.
pub(crate) const EXP_NEG_LN2_HI: f32 = f32::from_bits(0xbf31_7218);
/// `-ln(2)`, what the high part lacks.
pub(crate) const EXP_NEG_LN2_LO: f32 = f32::from_bits(0x3102_e308);
/// `p(r)`, highest power first.
pub(crate) const EXP_P: [f32; 6] = [
    f32::from_bits(0x394e_fde4),
    f32::from_bits(0x3ab6_a660),
    f32::from_bits(0x3c08_8987),
    f32::from_bits(0x3d2a_aa74),
    f32::from_bits(0x3e2a_aaaa),
    f32::from_bits(0x3f00_0000),
];

/// GELU's `sqrt(2/pi)`, 0.79788456.
pub(crate) const GELU_SLOPE: f32 = f32::from_bits(0x3f4c_422a);
/// GELU's 0.044715.
pub(crate) const GELU_CUBIC: f32 = f32::from_bits(0x3d37_2713);

/// EXP64 below this is +0.
pub(crate) const EXP64_LOWEST: f64 = -708.0;
/// EXP64 above this is +infinity; the vector paths are never given such a number.
pub(crate) const EXP64_HIGHEST: f64 = 709.0;
/// `log2(e)`.
pub(crate) const EXP64_LOG2E: f64 = f64::from_bits(0x3ff7_1547_652b_82fe);
/// `1.5 * 2^52`.
pub(crate) const EXP64_ROUNDER: f64 = f64::from_bits(0x4338_0000_0000_0000);
/// `-ln(2)`, the high part.
pub(crate) const EXP64_NEG_LN2_HI: f64 = f64::from_bits(0xbfe6_2e42_fefa_39ef);
/// `-ln(2)`, what the high part lacks.
pub(crate) const EXP64_NEG_LN2_LO: f64 = f64::from_bits(0xbc7a_bc9e_3b39_803f);
/// `1/13!` down to `1/2!`, then 1 and 1.
pub(crate) const EXP64_TAYLOR: [f64; 14] = [
    f64::from_bits(0x3de6_1246_13a8_6d09),
    f64::from_bits(0x3e21_eed8_eff8_d898),
    f64::from_bits(0x3e5a_e645_67f5_44e4),
    f64::from_bits(0x3e92_7e4f_b778_9f5c),
    f64::from_bits(0x3ec7_1de3_a556_c734),
    f64::from_bits(0x3efa_01a0_1a01_a01a),
    f64::from_bits(0x3f2a_01a0_1a01_a01a),
    f64::from_bits(0x3f56_c16c_16c1_6c17),
    f64::from_bits(0x3f81_1111_1111_1111),
    f64::from_bits(0x3fa5_5555_5555_5555),
    f64::from_bits(0x3fc5_5555_5555_5555),
    f64::from_bits(0x3fe0_0000_0000_0000),
    f64::from_bits(0x3ff0_0000_0000_0000),
    f64::from_bits(0x3ff0_0000_0000_0000),
];

/// `ln(2)` with its last 20 bits clear, so that times an exponent it is exact.
pub(crate) const LN64_LN2_HI: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
/// `ln(2)`, what the high part lacks.
pub(crate) const LN64_LN2_LO: f64 = f64::from_bits(0x3dea_39ef_3579_3c76);
/// `2/23` down to `2/3`.
pub(crate) const LN64_ATANH: [f64; 11] = [
    f64::from_bits(0x3fb6_42c8_590b_2164),
    f64::from_bits(0x3fb8_6186_1861_8618),
    f64::from_bits(0x3fba_f286_bca1_af28),
    f64::from_bits(0x3fbe_1e1e_1e1e_1e1e),
    f64::from_bits(0x3fc1_1111_1111_1111),
    f64::from_bits(0x3fc3_b13b_13b1_3b14),
    f64::from_bits(0x3fc7_45d1_745d_1746),
    f64::from_bits(0x3fcc_71c7_1c71_c71c),
    f64::from_bits(0x3fd2_4924_9249_2492),
    f64::from_bits(0x3fd9_9999_9999_999a),
    f64::from_bits(0x3fe5_5555_5555_5555),
];
