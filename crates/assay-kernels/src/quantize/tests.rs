//! Bit-equality of the quantiser over ISAs, against values worked out by hand and by definition.

use super::{ActivationProfile, QuantizedActivations};
use crate::{Compute, Isa, ThreadPool};
use std::num::NonZeroUsize;

fn compute(isa: Isa) -> Compute {
    Compute::new(isa, ThreadPool::new(NonZeroUsize::MIN))
}

fn quantize(isa: Isa, x: &[f32], k: usize, profile: ActivationProfile) -> QuantizedActivations {
    let mut q = QuantizedActivations::default();
    q.quantize(&compute(isa), x, k, profile);
    q
}

/// Deterministic values over many magnitudes, subnormals included.
fn values(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed | 1;
    (0..count)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let mantissa = (state >> 33) as u32 as f32 / (1_u32 << 30) as f32 - 1.0;
            mantissa * ((state >> 20 & 7) as f32 - 3.0).exp2()
        })
        .collect()
}

/// Every ISA and every batch shape gives the row the definition gives.
fn check_rows(x: &[f32], k: usize, profile: ActivationProfile) {
    let limit = profile.limit();
    let mut integers = vec![0; k];
    for isa in Isa::available() {
        let q = quantize(isa, x, k, profile);
        for (token, row) in x.chunks_exact(k).enumerate() {
            q.read_row(token, &mut integers);
            for (b, block) in row.chunks(profile.block_elements()).enumerate() {
                let first = b * profile.block_elements();
                let amax = block.iter().fold(0.0_f32, |m, v| {
                    if v.is_nan() || m.is_nan() {
                        f32::NAN
                    } else {
                        m.max(v.abs())
                    }
                });
                let scale = q.scale(token, first / 32);
                let place = format!("{} {profile:?} row {token} block {b}", isa.name());
                if !amax.is_finite() {
                    assert!(scale.is_nan(), "{place}: scale {scale}");
                    assert!(integers[first..first + block.len()].iter().all(|&a| a == 0));
                    continue;
                }
                let zero = amax < (-100.0_f32).exp2();
                let expected = if zero { 0.0 } else { amax / limit };
                assert_eq!(scale.to_bits(), expected.to_bits(), "{place}: scale");
                for (i, v) in block.iter().enumerate() {
                    let a = if zero {
                        0.0
                    } else {
                        (v * (limit / amax)).round_ties_even()
                    };
                    assert_eq!(
                        integers[first + i],
                        a as i32,
                        "{place} element {i} of {v:e}"
                    );
                }
            }
            let (index, place) = (token / q.full_tile_tokens(), token % q.full_tile_tokens());
            let tile = q.tile_sums(index);
            for (j, a) in integers.chunks_exact(16).enumerate() {
                let sum = tile[j * q.tile_width(index) + place];
                assert_eq!(
                    sum,
                    a.iter().sum::<i32>(),
                    "{} row {token} sum {j}",
                    isa.name()
                );
            }
        }
    }
}

#[test]
fn rows_follow_the_definition_on_every_isa() {
    for profile in [ActivationProfile::A16, ActivationProfile::A8] {
        for k in [32, 64, 256, 288, 576] {
            for num_tokens in [1, 2, 3, 4, 5, 9, 35] {
                check_rows(&values(num_tokens * k, k as u64), k, profile);
            }
        }
    }
}

#[test]
fn extreme_rows() {
    let k = 288;
    let mut rows = Vec::new();
    for special in [
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::MAX,
        1e-45,
        0.0,
    ] {
        let mut row = values(k, 7);
        row[3] = special;
        rows.extend(row);
    }
    for exponent in [-149.0_f32, -126.0, -101.0, -100.0, -99.5, 120.0] {
        rows.extend(values(k, 9).iter().map(|v| v / 16.0 * exponent.exp2()));
    }
    rows.extend((0..k).map(|i| if i % 2 == 0 { -1.0 } else { 1.0 }));
    rows.extend(std::iter::repeat_n(-0.0, k));
    for profile in [ActivationProfile::A16, ActivationProfile::A8] {
        check_rows(&rows, k, profile);
    }
}

/// Ties go to the even integer: amax = limit makes the inverse scale exactly one.
#[test]
fn ties_round_to_even() {
    for profile in [ActivationProfile::A16, ActivationProfile::A8] {
        let limit = profile.limit();
        let mut x = vec![0.0; 32];
        x[..6].copy_from_slice(&[limit, 0.5, 1.5, 2.5, -0.5, -3.5]);
        for isa in Isa::available() {
            let mut integers = vec![0; 32];
            quantize(isa, &x, 32, profile).read_row(0, &mut integers);
            let expected = [limit as i32, 0, 2, 2, 0, -4];
            assert_eq!(integers[..6], expected, "{} {profile:?}", isa.name());
        }
    }
}

/// A buffer reused for a smaller batch holds nothing of the larger one.
#[test]
fn a_buffer_is_reusable() {
    let (long, short) = (values(9 * 512, 1), values(2 * 64, 2));
    let cx = compute(Isa::detect());
    let mut q = QuantizedActivations::default();
    q.quantize(&cx, &long, 512, ActivationProfile::A16);
    q.quantize(&cx, &short, 64, ActivationProfile::A8);
    let fresh = quantize(Isa::detect(), &short, 64, ActivationProfile::A8);
    assert_eq!(q.tile_words(0), fresh.tile_words(0));
    assert_eq!(q.sums(), fresh.sums());
}
