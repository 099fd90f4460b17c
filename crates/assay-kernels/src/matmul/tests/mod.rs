//! Matrices of every format with ordinary, extreme and non-finite scales, for the tests beside this
//! file: bit-equality, the contract's chain by other means, packing, and products near the real ones.

mod bit_equal;
mod contract;
mod packing;
mod product;

use super::{Activations, PackedMatrix, Product, matmul, matmul_all};
use crate::quantize::ActivationProfile;
use crate::testing::{SeededGenerator, check_bits_equal};
use crate::{Compute, Isa, ThreadPool};
use assay_formats::DType;
use std::num::NonZeroUsize;

/// A format under test.
struct Case {
    dtype: DType,
    block_elements: usize,
    block_bytes: usize,
    scales: ScaleField,
}

/// Where a block keeps what scales it.
enum ScaleField {
    /// f16 at these bytes.
    Halves(&'static [usize]),
    /// An f16 in the top nibbles of the four words from this byte on.
    Nibbles(usize),
    /// An exponent byte.
    Exponent(usize),
}

use ScaleField::{Exponent, Halves, Nibbles};

const fn case(dtype: DType, block_elements: usize, block_bytes: usize, scales: ScaleField) -> Case {
    Case {
        dtype,
        block_elements,
        block_bytes,
        scales,
    }
}

const CASES: [Case; 20] = [
    case(DType::Q8_0, 32, 34, Halves(&[0])),
    case(DType::Q4_0, 32, 18, Halves(&[0])),
    case(DType::Q4_1, 32, 20, Halves(&[0, 2])),
    case(DType::Q5_0, 32, 22, Halves(&[0])),
    case(DType::Q5_1, 32, 24, Halves(&[0, 2])),
    case(DType::Q2K, 256, 84, Halves(&[80, 82])),
    case(DType::Q3K, 256, 110, Halves(&[108])),
    case(DType::Q4K, 256, 144, Halves(&[0, 2])),
    case(DType::Q5K, 256, 176, Halves(&[0, 2])),
    case(DType::Q6K, 256, 210, Halves(&[208])),
    case(DType::IQ2XXS, 256, 66, Halves(&[0])),
    case(DType::IQ2XS, 256, 74, Halves(&[0])),
    case(DType::IQ2S, 256, 82, Halves(&[0])),
    case(DType::IQ3XXS, 256, 98, Halves(&[0])),
    case(DType::IQ3S, 256, 110, Halves(&[0])),
    case(DType::IQ1S, 256, 50, Halves(&[0])),
    case(DType::IQ1M, 256, 56, Nibbles(48)),
    case(DType::IQ4NL, 32, 18, Halves(&[0])),
    case(DType::IQ4XS, 256, 136, Halves(&[0])),
    case(DType::MXFP4, 32, 17, Exponent(0)),
];

/// How the scales are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Scales {
    /// Around the size real files have.
    Ordinary,
    /// Zero, smallest subnormal, other subnormals, largest, both signs.
    Extreme,
    /// Infinite and NaN among ordinary ones; of exponents, which have neither, the greatest.
    NonFinite,
}

const EXTREME_HALVES: [u16; 8] = [
    0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x0400, 0x7BFF, 0xFBFF,
];
const NON_FINITE_HALVES: [u16; 4] = [0x7C00, 0xFC00, 0x7E00, 0x2C00];

/// One f16 of a kind.
fn half(random: &mut SeededGenerator, scales: Scales) -> u16 {
    let draw = random.next_u32();
    match scales {
        // Exponents 2^-9 … 2^-2, either sign.
        Scales::Ordinary => (draw & 0x83FF) as u16 | ((6 + (draw >> 16) % 8) << 10) as u16,
        Scales::Extreme => EXTREME_HALVES[draw as usize % EXTREME_HALVES.len()],
        Scales::NonFinite => NON_FINITE_HALVES[draw as usize % NON_FINITE_HALVES.len()],
    }
}

/// One exponent of a kind.
fn exponent(random: &mut SeededGenerator, scales: Scales) -> u8 {
    let draw = random.next_u32() as usize;
    match scales {
        // 2^-9 … 2^-2.
        Scales::Ordinary => 119 + (draw % 8) as u8,
        Scales::Extreme => [0, 1, 2, 3, 127, 200][draw % 6],
        Scales::NonFinite => [120, 253, 254, 255][draw % 4],
    }
}

impl Case {
    /// Raw bytes of a matrix; every byte pattern of quants occurs, ±128 and all-ones included.
    fn raw(&self, n: usize, k: usize, scales: Scales, seed: u64) -> Vec<u8> {
        let mut random = SeededGenerator::new(seed);
        let mut bytes = Vec::new();
        for block in 0..n * k / self.block_elements {
            let mut raw: Vec<u8> = match block % 7 {
                5 => vec![0x80; self.block_bytes],
                6 => vec![0xFF; self.block_bytes],
                _ => (0..self.block_bytes)
                    .map(|_| random.next_u32() as u8)
                    .collect(),
            };
            self.set_scales(&mut raw, &mut random, scales);
            bytes.extend(raw);
        }
        bytes
    }

    fn set_scales(&self, raw: &mut [u8], random: &mut SeededGenerator, scales: Scales) {
        match self.scales {
            Halves(fields) => {
                for &at in fields {
                    raw[at..at + 2].copy_from_slice(&half(random, scales).to_le_bytes());
                }
            }
            Nibbles(at) => {
                let bits = half(random, scales);
                for i in 0..4 {
                    let nibble = (bits >> (4 * i) & 15) as u8;
                    let byte = &mut raw[at + 2 * i + 1];
                    *byte = *byte & 15 | nibble << 4;
                }
            }
            Exponent(at) => raw[at] = exponent(random, scales),
        }
    }

    /// Some of the shapes, rounded up to whole blocks.
    fn shapes(&self) -> Vec<(usize, usize)> {
        let mut shapes: Vec<_> = [
            (1, 32),
            (15, 64),
            (16, 256),
            (17, 288),
            (48, 576),
            (33, 640),
            (16, 1536),
            (35, 2048),
            (3, 2336),
        ]
        .into_iter()
        .map(|(n, k): (usize, usize)| (n, k.next_multiple_of(self.block_elements)))
        .collect();
        shapes.dedup();
        shapes
    }
}

/// Inputs over a few binades.
fn inputs(count: usize, seed: u64) -> Vec<f32> {
    SeededGenerator::new(seed).spread(count, 4)
}

fn compute(isa: Isa, num_threads: usize) -> Compute {
    Compute::new(
        isa,
        ThreadPool::new(NonZeroUsize::new(num_threads).unwrap()),
    )
}

fn run(
    cx: &Compute,
    w: &PackedMatrix,
    x: &[f32],
    profile: ActivationProfile,
    bias: Option<&[f32]>,
) -> Vec<f32> {
    let x = Activations::new(cx, x, w.k(), profile);
    let mut out = vec![f32::NAN; x.num_tokens() * w.n()];
    matmul(cx, w, &x, bias, &mut out);
    out
}

/// Outputs of rows of `n` have the same bits.
#[track_caller]
fn check_equal(what: &str, n: usize, actual: &[f32], expected: &[f32]) {
    check_bits_equal(what, &[actual.len() / n, n], expected, actual);
}
