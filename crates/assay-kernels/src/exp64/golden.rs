//! Golden cases of the exponentials and the logarithm, over their whole domains.

use super::{exp64, ln64};
use crate::exp::exp;
use crate::golden::{GoldenCase, hash_f32};
use crate::testing::SeededGenerator;

pub(crate) const CASES: &[GoldenCase] = &[
    GoldenCase {
        name: "exp/domain",
        run: |_| {
            let x = SeededGenerator::new(0x0901).units(4_096);
            hash_f32(&x.iter().map(|x| exp(x * 88.0)).collect::<Vec<_>>())
        },
    },
    GoldenCase {
        name: "exp64/domain",
        run: |_| hash_f64(0x0902, |unit| exp64(f64::from(unit) * 709.0)),
    },
    GoldenCase {
        name: "ln64/domain",
        run: |_| hash_f64(0x0903, |unit| ln64(exp64(f64::from(unit) * 709.0) * 1.25)),
    },
];

/// Hash of `run` over 4,096 numbers in [−1, 1); none of its results is NaN.
fn hash_f64(seed: u64, run: impl Fn(f32) -> f64) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for unit in SeededGenerator::new(seed).units(4_096) {
        hasher.update(&run(unit).to_bits().to_le_bytes());
    }
    hasher.finalize()
}
