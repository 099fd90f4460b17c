//! Golden cases of RMSNorm: a model's row, several chunks with a tail, and subnormals.

use crate::golden::{GoldenCase, hash_f32};
use crate::testing::SeededGenerator;

pub(crate) const CASES: &[GoldenCase] = &[
    GoldenCase {
        name: "rms_norm/rows",
        run: |ops| {
            let mut generator = SeededGenerator::new(0x0201);
            let (x, weight) = (generator.spread(5 * 576, 20), generator.units(576));
            Some(hash_f32(&ops.rms_norm(&x, &weight, 1e-5)))
        },
    },
    GoldenCase {
        name: "rms_norm/chunks",
        run: |ops| {
            let mut generator = SeededGenerator::new(0x0202);
            let (x, weight) = (generator.spread(2 * 2507, 20), generator.units(2507));
            Some(hash_f32(&ops.rms_norm_in_place(&x, &weight, 1e-6)))
        },
    },
    GoldenCase {
        name: "rms_norm/subnormal",
        run: |ops| {
            let mut generator = SeededGenerator::new(0x0203);
            let (mut x, weight) = (generator.spread(4 * 64, 120), generator.spread(64, 120));
            for x in x.iter_mut().skip(64) {
                *x *= f32::MIN_POSITIVE;
            }
            let out = ops.rms_norm_in_place(&x, &weight, f32::from_bits(1));
            Some(hash_f32(&out))
        },
    },
];
