//! Golden cases of residual addition and scaling.

use super::{add, scale};
use crate::golden::{GoldenCase, hash_f32};
use crate::testing::SeededGenerator;

pub(crate) const CASES: &[GoldenCase] = &[
    GoldenCase {
        name: "residual/add",
        run: |cx| {
            let mut generator = SeededGenerator::new(0x0101);
            let (mut out, x) = (generator.spread(577, 30), generator.spread(577, 30));
            add(cx, &mut out, &x);
            hash_f32(&out)
        },
    },
    GoldenCase {
        name: "residual/scale",
        run: |cx| {
            let mut x = SeededGenerator::new(0x0102).spread(577, 120);
            // √640, Gemma 3 270M's factor.
            scale(cx, &mut x, f32::from_bits(0x41CA_62C2));
            hash_f32(&x)
        },
    },
];
