//! Matrices of every format with ordinary, extreme and non-finite scales, for the tests beside this
//! file: bit-equality, packing, and products near the real ones.

mod bit_equal;
mod packing;
mod product;

use super::{Activations, PackedMatrix, matmul};
use crate::quantize::ActivationProfile;
use crate::testing::{SeededGenerator, check_bits_equal};
use crate::{Compute, Isa, ThreadPool};
use assay_formats::DType;
use std::num::NonZeroUsize;

/// A format under test: block elements, block bytes, byte offsets of its f16 fields.
struct Case {
    dtype: DType,
    block_elements: usize,
    block_bytes: usize,
    halves: &'static [usize],
}

const fn case(
    dtype: DType,
    block_elements: usize,
    block_bytes: usize,
    halves: &'static [usize],
) -> Case {
    Case {
        dtype,
        block_elements,
        block_bytes,
        halves,
    }
}

const CASES: [Case; 8] = [
    case(DType::Q8_0, 32, 34, &[0]),
    case(DType::Q4_0, 32, 18, &[0]),
    case(DType::Q4_1, 32, 20, &[0, 2]),
    case(DType::Q5_0, 32, 22, &[0]),
    case(DType::Q5_1, 32, 24, &[0, 2]),
    case(DType::Q4K, 256, 144, &[0, 2]),
    case(DType::Q5K, 256, 176, &[0, 2]),
    case(DType::Q6K, 256, 210, &[208]),
];

/// How the f16 scales are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Scales {
    /// Around the size real files have.
    Ordinary,
    /// Zero, smallest subnormal, other subnormals, largest, both signs.
    Extreme,
    /// Infinite and NaN among ordinary ones.
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
            for &at in self.halves {
                raw[at..at + 2].copy_from_slice(&half(&mut random, scales).to_le_bytes());
            }
            bytes.extend(raw);
        }
        bytes
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
