//! Golden cases of the soft-cap.

use crate::golden::{GoldenCase, hash_f32};
use crate::testing::SeededGenerator;

pub(crate) const CASES: &[GoldenCase] = &[GoldenCase {
    name: "softcap/row",
    run: |ops| {
        let x: Vec<f32> = SeededGenerator::new(0x0D01)
            .spread(2_003, 20)
            .iter()
            .map(|x| x * 4_000.0)
            .collect();
        Some(hash_f32(&ops.softcap(&x, 30.0)))
    },
}];
