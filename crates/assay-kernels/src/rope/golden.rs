//! Golden cases of the rotary tables and the rotation.

use super::{RopeParameters, RopeStyle, RopeTable};
use crate::golden::{GoldenCase, hash_f32};
use crate::golden_ops::{GoldenOps, Heads};
use crate::testing::SeededGenerator;

pub(crate) const CASES: &[GoldenCase] = &[
    GoldenCase {
        name: "rope/table",
        run: |_| Some(table(None, 512).hash()),
    },
    GoldenCase {
        name: "rope/table_factors",
        run: |_| {
            let table = table(
                Some(&[
                    1., 1., 1., 1.25, 1.5, 2.25, 3., 4., 5., 6., 7., 8., 8., 8., 8., 8., 8.,
                ]),
                128,
            );
            Some(table.hash())
        },
    },
    GoldenCase {
        name: "rope/interleaved",
        run: |ops| rotated(ops, RopeStyle::Interleaved),
    },
    GoldenCase {
        name: "rope/half_split",
        run: |ops| rotated(ops, RopeStyle::HalfSplit),
    },
];

fn table(freq_factors: Option<&[f32]>, num_positions: usize) -> RopeTable {
    let parameters = RopeParameters {
        rotary_dims: 34,
        theta: 1e5,
        freq_factors,
        linear_scale: 1.0,
        num_positions,
    };
    RopeTable::new(&parameters).expect("the constants above are in range")
}

fn rotated(ops: &dyn GoldenOps, style: RopeStyle) -> Option<blake3::Hash> {
    let mut generator = SeededGenerator::new(0x0301);
    let x = generator.spread(7 * 3 * 40, 120);
    let positions: Vec<u32> = (0..7).map(|_| generator.next_u32() % 512).collect();
    let heads = Heads {
        num_heads: 3,
        head_dim: 40,
    };
    let out = ops.rope(&table(None, 512), style, &positions, &x, heads);
    Some(hash_f32(&out))
}
