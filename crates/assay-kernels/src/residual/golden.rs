//! Golden cases of residual addition and scaling.

use crate::golden::{GoldenCase, hash_f32};
use crate::testing::SeededGenerator;

pub(crate) const CASES: &[GoldenCase] = &[
    GoldenCase {
        name: "residual/add",
        run: |ops| {
            let mut generator = SeededGenerator::new(0x0101);
            let (out, x) = (generator.spread(577, 30), generator.spread(577, 30));
            Some(hash_f32(&ops.add(&out, &x)))
        },
    },
    GoldenCase {
        name: "residual/scale",
        run: |ops| {
            let x = SeededGenerator::new(0x0102).spread(577, 120);
            // √640, Gemma 3 270M's factor.
            Some(hash_f32(&ops.scale(&x, f32::from_bits(0x41CA_62C2))))
        },
    },
];
