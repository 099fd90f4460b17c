//! Golden cases of the exponentials and the logarithm, over their whole domains.

use crate::golden::{GoldenCase, hash_f32};
use crate::testing::SeededGenerator;

pub(crate) const CASES: &[GoldenCase] = &[
    GoldenCase {
        name: "exp/domain",
        run: |ops| {
            let units = SeededGenerator::new(0x0901).units(4_096);
            let x: Vec<f32> = units.iter().map(|x| x * 88.0).collect();
            Some(hash_f32(&ops.exp(&x)))
        },
    },
    GoldenCase {
        name: "exp64/domain",
        run: |ops| Some(hash_f64(&ops.exp64(&exponents(0x0902)))),
    },
    GoldenCase {
        name: "ln64/domain",
        run: |ops| {
            let exp = ops.exp64(&exponents(0x0903));
            let x: Vec<f64> = exp.iter().map(|x| x * 1.25).collect();
            Some(hash_f64(&ops.ln64(&x)))
        },
    },
];

/// 4,096 numbers in [−709, 709).
fn exponents(seed: u64) -> Vec<f64> {
    let units = SeededGenerator::new(seed).units(4_096);
    units.iter().map(|&unit| f64::from(unit) * 709.0).collect()
}

/// Hash of values of which none is NaN.
fn hash_f64(values: &[f64]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for value in values {
        hasher.update(&value.to_bits().to_le_bytes());
    }
    hasher.finalize()
}
