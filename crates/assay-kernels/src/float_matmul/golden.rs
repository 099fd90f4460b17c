//! Golden cases of the float product: each element type, several blocks with a tail, bias, padding rows.

use crate::golden::{GoldenCase, hash_f32};
use crate::golden_ops::GoldenOps;
use crate::matmul::PackedMatrix;
use crate::quantize::ActivationProfile;
use crate::testing::SeededGenerator;
use assay_formats::DType;

pub(crate) const CASES: &[GoldenCase] = &[
    GoldenCase {
        name: "float_matmul/f32",
        run: |ops| product(ops, DType::F32, 0x0401),
    },
    GoldenCase {
        name: "float_matmul/f16",
        run: |ops| product(ops, DType::F16, 0x0402),
    },
    GoldenCase {
        name: "float_matmul/bf16",
        run: |ops| product(ops, DType::BF16, 0x0403),
    },
];

fn product(ops: &dyn GoldenOps, dtype: DType, seed: u64) -> Option<blake3::Hash> {
    let (t, n, k) = (7, 83, 605);
    let mut generator = SeededGenerator::new(seed);
    let bytes: Vec<u8> = match dtype {
        DType::F32 => generator
            .spread(n * k, 120)
            .iter()
            .flat_map(|w| w.to_le_bytes())
            .collect(),
        // The top exponent bit is cleared, so every pattern is finite: subnormals and all.
        _ => (0..n * k)
            .flat_map(|_| ((generator.next_u32() & 0xBFFF) as u16).to_le_bytes())
            .collect(),
    };
    let matrix = PackedMatrix::pack(dtype, n, k, &bytes).expect("the bytes fit the shape");
    let (x, bias) = (generator.spread(t * k, 60), generator.units(n));
    let out = ops.matmul(&matrix, &x, ActivationProfile::A16, Some(&bias))?;
    Some(hash_f32(&out))
}
