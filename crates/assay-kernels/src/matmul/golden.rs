//! Golden cases of the quantised product: every block format under both activation profiles, several
//! 256-blocks with a short last one, a padded row group, a short token tile, scales of every size.

use super::PackedMatrix;
use crate::golden::{GoldenCase, hash_f32};
use crate::golden_ops::GoldenOps;
use crate::quantize::ActivationProfile::{self, A8, A16};
use crate::testing::SeededGenerator;
use assay_formats::DType;

/// What a case multiplies; `k` is rounded up to whole blocks.
struct Shape {
    num_tokens: usize,
    n: usize,
    k: usize,
}

/// The common formats.
const LARGE: Shape = Shape {
    num_tokens: 7,
    n: 35,
    k: 608,
};
/// The others: all cases together must fit the time of a start.
const SMALL: Shape = Shape {
    num_tokens: 5,
    n: 19,
    k: 288,
};

macro_rules! cases {
    ($($name:literal, $dtype:ident, $seed:literal, $shape:ident;)*) => {
        pub(crate) const CASES: &[GoldenCase] = &[$(
            GoldenCase {
                name: concat!("matmul/", $name, "/a16"),
                run: |ops| product(ops, DType::$dtype, A16, $seed, &$shape),
            },
            GoldenCase {
                name: concat!("matmul/", $name, "/a8"),
                run: |ops| product(ops, DType::$dtype, A8, $seed, &$shape),
            },
        )*];
    };
}

cases! {
    "q8_0", Q8_0, 0x0501, LARGE;
    "q4_0", Q4_0, 0x0502, LARGE;
    "q4_1", Q4_1, 0x0503, LARGE;
    "q5_0", Q5_0, 0x0504, LARGE;
    "q5_1", Q5_1, 0x0505, LARGE;
    "q4_k", Q4K, 0x0506, LARGE;
    "q5_k", Q5K, 0x0507, LARGE;
    "q6_k", Q6K, 0x0508, LARGE;
    "q2_k", Q2K, 0x0509, SMALL;
    "q3_k", Q3K, 0x050a, SMALL;
    "iq2_xxs", IQ2XXS, 0x050b, SMALL;
    "iq2_xs", IQ2XS, 0x050c, SMALL;
    "iq2_s", IQ2S, 0x050d, SMALL;
    "iq3_xxs", IQ3XXS, 0x050e, SMALL;
    "iq3_s", IQ3S, 0x050f, SMALL;
    "iq1_s", IQ1S, 0x0510, SMALL;
    "iq1_m", IQ1M, 0x0511, SMALL;
    "iq4_nl", IQ4NL, 0x0512, SMALL;
    "iq4_xs", IQ4XS, 0x0513, SMALL;
    "mxfp4", MXFP4, 0x0514, SMALL;
}

/// Raw blocks whose quants and small integers take every value and whose scales are finite, subnormals
/// among them.
pub(crate) fn raw_blocks(
    generator: &mut SeededGenerator,
    dtype: DType,
    elements: usize,
) -> Vec<u8> {
    let num_blocks = elements / dtype.block_len();
    let mut bytes = generator.bytes(num_blocks * dtype.block_bytes());
    // The upper byte of each f16; clearing its top exponent bit leaves no infinity or NaN. Of MXFP4 the
    // exponent, which then leaves room for the products.
    let upper_bytes: &[usize] = match dtype {
        DType::Q4_1 | DType::Q5_1 | DType::Q4K | DType::Q5K => &[1, 3],
        DType::Q2K => &[81, 83],
        DType::Q3K => &[109],
        DType::Q6K => &[209],
        DType::IQ1M => &[55],
        DType::MXFP4 => &[0],
        _ => &[1],
    };
    for block in bytes.chunks_exact_mut(dtype.block_bytes()) {
        for &at in upper_bytes {
            block[at] &= 0xBF;
        }
    }
    bytes
}

fn product(
    ops: &dyn GoldenOps,
    dtype: DType,
    profile: ActivationProfile,
    seed: u64,
    &Shape { num_tokens, n, k }: &Shape,
) -> Option<blake3::Hash> {
    let k = k.next_multiple_of(dtype.block_len());
    let mut generator = SeededGenerator::new(seed);
    let bytes = raw_blocks(&mut generator, dtype, n * k);
    let w = PackedMatrix::pack(dtype, n, k, &bytes).expect("the bytes fit the shape");
    let (mut x, bias) = (generator.spread(num_tokens * k, 40), generator.units(n));
    // One row at the edge of the zero block, so that products and scales reach subnormals.
    for value in &mut x[k..2 * k] {
        *value *= f32::from_bits((127 - 98) << 23);
    }
    let mut hashed = ops.matmul(&w, &x, profile, Some(&bias))?;
    hashed.extend(ops.matmul(&w, &x, profile, None)?);
    Some(hash_f32(&hashed))
}
