//! Golden cases of top-k: a spread row, and one where most values are tied.

use super::top_k;
use crate::golden::GoldenCase;
use crate::isa::Isa;
use crate::testing::SeededGenerator;

pub(crate) const CASES: &[GoldenCase] = &[
    GoldenCase {
        name: "top_k/spread",
        run: |cx| hash(cx.isa, &SeededGenerator::new(0x0501).spread(4999, 20), 20),
    },
    GoldenCase {
        name: "top_k/ties",
        run: |cx| {
            let mut generator = SeededGenerator::new(0x0502);
            let row: Vec<f32> = (0..3001)
                .map(|_| (generator.next_u32() % 7) as f32 - 3.0)
                .collect();
            hash(cx.isa, &row, 600)
        },
    },
];

fn hash(isa: Isa, row: &[f32], k: usize) -> blake3::Hash {
    let best = top_k(isa, row, k).expect("the generator makes no NaN");
    let mut hasher = blake3::Hasher::new();
    for (index, value) in best {
        hasher
            .update(&index.to_le_bytes())
            .update(&value.to_bits().to_le_bytes());
    }
    hasher.finalize()
}
