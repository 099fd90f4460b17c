//! Golden cases of SwiGLU's gate.

use crate::golden::{GoldenCase, hash_f32};
use crate::testing::SeededGenerator;

pub(crate) const CASES: &[GoldenCase] = &[GoldenCase {
    name: "silu_mul/row",
    run: |ops| {
        let mut generator = SeededGenerator::new(0x0B01);
        let gate: Vec<f32> = generator
            .spread(3_001, 20)
            .iter()
            .map(|x| x * 100.0)
            .collect();
        let up = generator.units(gate.len());
        Some(hash_f32(&ops.silu_mul(&gate, &up)))
    },
}];
