//! Golden cases of top-k: a spread row, and one where most values are tied.

use crate::golden::GoldenCase;
use crate::golden_ops::GoldenOps;
use crate::testing::SeededGenerator;

pub(crate) const CASES: &[GoldenCase] = &[
    GoldenCase {
        name: "top_k/spread",
        run: |ops| hash(ops, &SeededGenerator::new(0x0501).spread(4999, 20), 20),
    },
    GoldenCase {
        name: "top_k/ties",
        run: |ops| {
            let mut generator = SeededGenerator::new(0x0502);
            let row: Vec<f32> = (0..3001)
                .map(|_| (generator.next_u32() % 7) as f32 - 3.0)
                .collect();
            hash(ops, &row, 600)
        },
    },
];

fn hash(ops: &dyn GoldenOps, row: &[f32], k: usize) -> Option<blake3::Hash> {
    let best = ops.top_k(row, k);
    let mut hasher = blake3::Hasher::new();
    for (index, value) in best? {
        hasher
            .update(&index.to_le_bytes())
            .update(&value.to_bits().to_le_bytes());
    }
    Some(hasher.finalize())
}
