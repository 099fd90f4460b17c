//! The reference against the contract's section 3 by other means: integers recovered from the exact
//! values, scales read from the raw bytes, activations quantised here, and the chain in plain loops.

use super::*;
use crate::quantize::ActivationProfile::{self, A8, A16};
use assay_formats::quant::{
    Block, BlockIQ1M, BlockIQ1S, BlockIQ2S, BlockIQ2XS, BlockIQ2XXS, BlockIQ3S, BlockIQ3XXS,
    BlockIQ4XS, BlockQ4K, BlockQ5K, ScaledQuants, dequantize, scales_and_mins,
};

/// `w_j` and `n_j` of one sub-block.
type Pair = (f32, f32);

fn half_at(raw: &[u8], at: usize) -> f32 {
    half::f16::from_le_bytes([raw[at], raw[at + 1]]).to_f32()
}

fn scaled<B: ScaledQuants>(raw: &[u8]) -> Vec<Pair> {
    let block = B::from_bytes(raw);
    let scale = |j| block.d().to_f32() * f32::from(block.scale(j)) / f32::from(B::SCALE_DIVISOR);
    (0..256 / B::SUB_BLOCK).map(|j| (scale(j), 0.0)).collect()
}

fn with_minima(d: f32, dmin: f32, packed: &[u8; 12]) -> Vec<Pair> {
    let pairs = scales_and_mins(packed).into_iter();
    pairs
        .map(|pair| (d * f32::from(pair.scale), -(dmin * f32::from(pair.min))))
        .collect()
}

/// The scales of one raw block, ascending.
fn scales_of(dtype: DType, raw: &[u8]) -> Vec<Pair> {
    match dtype {
        DType::Q8_0 | DType::Q4_0 | DType::Q5_0 | DType::IQ4NL => vec![(half_at(raw, 0), 0.0)],
        DType::Q4_1 | DType::Q5_1 => vec![(half_at(raw, 0), half_at(raw, 2))],
        DType::MXFP4 => vec![(2_f64.powi(i32::from(raw[0]) - 128) as f32, 0.0)],
        DType::Q2K => {
            let (d, dmin) = (half_at(raw, 80), half_at(raw, 82));
            let pair = |&byte: &u8| (d * f32::from(byte & 15), -(dmin * f32::from(byte >> 4)));
            raw[..16].iter().map(pair).collect()
        }
        DType::Q3K => {
            let packed = u128::from_le_bytes(std::array::from_fn(|i| match i {
                0..12 => raw[96 + i],
                _ => 0,
            }));
            let scale = |j: usize| {
                let low = packed >> (8 * (j % 8) + 4 * (j / 8)) & 15;
                let high = packed >> (64 + 8 * (j % 4) + 2 * (j / 4)) & 3;
                half_at(raw, 108) * ((low + 16 * high) as f32 - 32.0)
            };
            (0..16).map(|j| (scale(j), 0.0)).collect()
        }
        DType::Q4K => {
            let block = BlockQ4K::from_bytes(raw);
            with_minima(block.d.to_f32(), block.dmin.to_f32(), &block.scales)
        }
        DType::Q5K => {
            let block = BlockQ5K::from_bytes(raw);
            with_minima(block.d.to_f32(), block.dmin.to_f32(), &block.scales)
        }
        DType::Q6K => {
            let scale = |&byte: &u8| (half_at(raw, 208) * f32::from(byte.cast_signed()), 0.0);
            raw[192..208].iter().map(scale).collect()
        }
        DType::IQ2XXS => scaled::<BlockIQ2XXS>(raw),
        DType::IQ2XS => scaled::<BlockIQ2XS>(raw),
        DType::IQ2S => scaled::<BlockIQ2S>(raw),
        DType::IQ3XXS => scaled::<BlockIQ3XXS>(raw),
        DType::IQ3S => scaled::<BlockIQ3S>(raw),
        DType::IQ1S => scaled::<BlockIQ1S>(raw),
        DType::IQ1M => scaled::<BlockIQ1M>(raw),
        DType::IQ4XS => scaled::<BlockIQ4XS>(raw),
        _ => panic!("no scales of {dtype}"),
    }
}

/// Integers and the scale of one activation block: `limit` is 32,512 or 127.
fn quantize(x: &[f32], limit: f32) -> (Vec<i64>, f32) {
    let amax = x.iter().fold(0.0_f32, |amax, v| amax.max(v.abs()));
    if amax < 2_f32.powi(-100) {
        return (vec![0; x.len()], 0.0);
    }
    let integer = |v: &f32| (v * (limit / amax)).round_ties_even().clamp(-limit, limit) as i64;
    (x.iter().map(integer).collect(), amax / limit)
}

/// One output: the row's exact values and scales, and a row of inputs.
fn chain(
    values: &[f32],
    scales: &[Pair],
    has_offset: bool,
    x: &[f32],
    profile: ActivationProfile,
) -> f32 {
    let sub_block = values.len() / scales.len();
    let mut y = 0.0_f32;
    for first in (0..values.len()).step_by(256) {
        let end = (first + 256).min(values.len());
        let (wide, d_wide) = quantize(&x[first..end], 32_512.0);
        let mut acc = 0.0_f32;
        for at in (first..end).step_by(sub_block) {
            let (mut w, mut n) = scales[at / sub_block];
            // Exact quotients: a zero scale multiplies any integer to nothing.
            let q = |value: f32| match w {
                0.0 => 0,
                _ => ((f64::from(value) - f64::from(n)) / f64::from(w)).round() as i64,
            };
            let q: Vec<i64> = values[at..at + sub_block].iter().map(|&v| q(v)).collect();
            let a = match profile {
                A16 => wide[at - first..at - first + sub_block].to_vec(),
                A8 => {
                    let (a, d) = quantize(&x[at / 32 * 32..at / 32 * 32 + 32], 127.0);
                    (w, n) = (w * d, n * d);
                    a[at % 32..at % 32 + sub_block].to_vec()
                }
            };
            let s: i64 = q.iter().zip(&a).map(|(q, a)| q * a).sum();
            let s = i32::try_from(s).expect("s_j fits 32 bits");
            acc = (s as f32).mul_add(w, acc);
            if has_offset {
                acc = (a.iter().sum::<i64>() as f32).mul_add(n, acc);
            }
        }
        y = match profile {
            A16 => acc.mul_add(d_wide, y),
            A8 => y + acc,
        };
    }
    y
}

fn check_contract(case: &Case, n: usize, k: usize, scales: Scales, num_tokens: usize) {
    let raw = case.raw(n, k, scales, 77);
    let w = PackedMatrix::pack(case.dtype, n, k, &raw).unwrap();
    let mut values = vec![0.0; n * k];
    dequantize(case.dtype, &raw, &mut values).unwrap();
    let pairs: Vec<Pair> = raw
        .chunks_exact(case.block_bytes)
        .flat_map(|block| scales_of(case.dtype, block))
        .collect();
    let has_offset = matches!(
        case.dtype,
        DType::Q4_1 | DType::Q5_1 | DType::Q2K | DType::Q4K | DType::Q5K
    );
    let pairs_per_row = pairs.len() / n;
    let mut x = inputs(num_tokens * k, 78);
    // A block of zeros, and one whose products with the scales are subnormal.
    x[..32].fill(0.0);
    x[k - 32..k].iter_mut().for_each(|v| *v *= 2_f32.powi(-95));
    for profile in [A16, A8] {
        let expected: Vec<f32> = x
            .chunks_exact(k)
            .flat_map(|x| {
                let rows = values
                    .chunks_exact(k)
                    .zip(pairs.chunks_exact(pairs_per_row));
                rows.map(move |(row, pairs)| chain(row, pairs, has_offset, x, profile))
            })
            .collect();
        let found = run(&compute(Isa::SCALAR, 1), &w, &x, profile, None);
        let what = format!("{} {profile:?} {scales:?} n {n} k {k}", case.dtype);
        check_equal(&what, n, &found, &expected);
    }
}

#[test]
fn the_reference_is_the_contracts_chain() {
    for case in &CASES {
        for (n, k) in [
            (3, 1536),
            (5, 608_usize.next_multiple_of(case.block_elements)),
        ] {
            check_contract(case, n, k, Scales::Ordinary, 3);
        }
    }
}

/// With an offset, integers cannot be recovered from values that rounded: formats without one.
#[test]
fn the_chain_holds_for_extreme_scales() {
    for case in &CASES {
        if !matches!(
            case.dtype,
            DType::Q4_1 | DType::Q5_1 | DType::Q2K | DType::Q4K | DType::Q5K
        ) {
            check_contract(case, 7, 768, Scales::Extreme, 2);
        }
    }
}
