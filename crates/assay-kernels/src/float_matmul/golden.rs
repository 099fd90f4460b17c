//! Golden cases of the float product: each element type, several blocks with a tail, bias, padding rows.

use super::{FloatMatrix, FloatType, float_matmul};
use crate::Compute;
use crate::golden::{GoldenCase, hash_f32};
use crate::testing::SeededGenerator;

pub(crate) const CASES: &[GoldenCase] = &[
    GoldenCase {
        name: "float_matmul/f32",
        run: |cx| product(cx, FloatType::F32, 0x0401),
    },
    GoldenCase {
        name: "float_matmul/f16",
        run: |cx| product(cx, FloatType::F16, 0x0402),
    },
    GoldenCase {
        name: "float_matmul/bf16",
        run: |cx| product(cx, FloatType::BF16, 0x0403),
    },
];

fn product(cx: &Compute, float_type: FloatType, seed: u64) -> blake3::Hash {
    let (t, n, k) = (7, 83, 605);
    let mut generator = SeededGenerator::new(seed);
    let bytes: Vec<u8> = match float_type {
        FloatType::F32 => generator
            .spread(n * k, 120)
            .iter()
            .flat_map(|w| w.to_le_bytes())
            .collect(),
        // The top exponent bit is cleared, so every pattern is finite: subnormals and all.
        FloatType::F16 | FloatType::BF16 => (0..n * k)
            .flat_map(|_| ((generator.next_u32() & 0xBFFF) as u16).to_le_bytes())
            .collect(),
    };
    let matrix =
        FloatMatrix::from_le_bytes(float_type, n, k, &bytes).expect("the bytes fit the shape");
    let (x, bias) = (generator.spread(t * k, 60), generator.units(n));
    let mut out = vec![0.0; t * n];
    float_matmul(cx, &matrix, &x, Some(&bias), &mut out);
    hash_f32(&out)
}
