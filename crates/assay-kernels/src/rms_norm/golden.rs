//! Golden cases of RMSNorm: a model's row, several chunks with a tail, and subnormals.

use super::{rms_norm, rms_norm_in_place};
use crate::golden::{GoldenCase, hash_f32};
use crate::testing::SeededGenerator;

pub(crate) const CASES: &[GoldenCase] = &[
    GoldenCase {
        name: "rms_norm/rows",
        run: |cx| {
            let mut generator = SeededGenerator::new(0x0201);
            let (x, weight) = (generator.spread(5 * 576, 20), generator.units(576));
            let mut out = vec![0.0; x.len()];
            rms_norm(cx, &x, &weight, 1e-5, &mut out);
            hash_f32(&out)
        },
    },
    GoldenCase {
        name: "rms_norm/chunks",
        run: |cx| {
            let mut generator = SeededGenerator::new(0x0202);
            let (mut x, weight) = (generator.spread(2 * 2507, 20), generator.units(2507));
            rms_norm_in_place(cx, &mut x, &weight, 1e-6);
            hash_f32(&x)
        },
    },
    GoldenCase {
        name: "rms_norm/subnormal",
        run: |cx| {
            let mut generator = SeededGenerator::new(0x0203);
            let (mut x, weight) = (generator.spread(4 * 64, 120), generator.spread(64, 120));
            for x in x.iter_mut().skip(64) {
                *x *= f32::MIN_POSITIVE;
            }
            rms_norm_in_place(cx, &mut x, &weight, f32::from_bits(1));
            hash_f32(&x)
        },
    },
];
