//! Golden cases of the embedding rule: rows of every block format from a packed table.

use crate::golden::{GoldenCase, hash_f32};
use crate::golden_ops::GoldenOps;
use crate::matmul::PackedMatrix;
use crate::matmul::golden::raw_blocks;
use crate::testing::SeededGenerator;
use assay_formats::DType;

macro_rules! cases {
    ($($name:literal, $dtype:ident, $seed:literal;)*) => {
        pub(crate) const CASES: &[GoldenCase] = &[$(
            GoldenCase {
                name: concat!("embed/", $name),
                run: |ops| rows(ops, DType::$dtype, $seed),
            },
        )*];
    };
}

cases! {
    "q8_0", Q8_0, 0x0701;
    "q4_0", Q4_0, 0x0702;
    "q4_1", Q4_1, 0x0703;
    "q5_0", Q5_0, 0x0704;
    "q5_1", Q5_1, 0x0705;
    "q4_k", Q4K, 0x0706;
    "q5_k", Q5K, 0x0707;
    "q6_k", Q6K, 0x0708;
    "q2_k", Q2K, 0x0709;
    "q3_k", Q3K, 0x070a;
    "iq2_xxs", IQ2XXS, 0x070b;
    "iq2_xs", IQ2XS, 0x070c;
    "iq2_s", IQ2S, 0x070d;
    "iq3_xxs", IQ3XXS, 0x070e;
    "iq3_s", IQ3S, 0x070f;
    "iq1_s", IQ1S, 0x0710;
    "iq1_m", IQ1M, 0x0711;
    "iq4_nl", IQ4NL, 0x0712;
    "iq4_xs", IQ4XS, 0x0713;
    "mxfp4", MXFP4, 0x0714;
}

fn rows(ops: &dyn GoldenOps, dtype: DType, seed: u64) -> Option<blake3::Hash> {
    let (num_rows, k) = (18, 512);
    let bytes = raw_blocks(&mut SeededGenerator::new(seed), dtype, num_rows * k);
    let table = PackedMatrix::pack(dtype, num_rows, k, &bytes).expect("the bytes fit the shape");
    Some(hash_f32(&ops.embed(&table, &[0, 17, 5, 16, 5])))
}
