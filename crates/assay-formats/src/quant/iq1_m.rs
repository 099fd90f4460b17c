//! IQ1_M: 256 ternary numbers in octets from a lattice of 2,048 points, each octet shifted by an eighth up or down, with
//! a 3-bit scale per 16. The f16 is scattered over the words of the scales.
//!
//! `value = (d * (2 * scale + 1)) * (point ± 1/8)`, here with whole numbers: `(d * (2 * scale + 1) / 8) * (8 * point ± 1)`;
//! exact both ways.

use half::f16;

use super::block::{Block, Fields, assert_block_size};
use super::grids;
use super::lattice::{iq1_octet, nibble};
use super::scaled_quants::{self, SUPER_BLOCK, ScaledQuants};
use crate::dtype::DType;

/// One IQ1_M block, fields in file order.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct BlockIQ1M {
    /// Low eight bits of each octet's point number.
    pub qs: [u8; 32],
    /// A nibble per octet, low ones first: top three bits of the point number, direction of the shift (set: down).
    pub qh: [u8; 16],
    /// Four little-endian words: four scales of three bits, then four bits of the f16, its lowest in the first word.
    pub scales: [u8; 8],
}

assert_block_size!(BlockIQ1M);

impl BlockIQ1M {
    /// Word `i` of the scales.
    fn word(&self, i: usize) -> u16 {
        u16::from_le_bytes([self.scales[2 * i], self.scales[2 * i + 1]])
    }
}

impl ScaledQuants for BlockIQ1M {
    const SUB_BLOCK: usize = 16;
    const SCALE_DIVISOR: u8 = 8;

    fn d(&self) -> f16 {
        let nibbles = (0..4).map(|i| (self.word(i) >> 12) << (4 * i));
        f16::from_bits(nibbles.fold(0, |bits, nibble| bits | nibble))
    }

    fn scale(&self, j: usize) -> i8 {
        2 * (self.word(j / 4) >> (3 * (j % 4)) & 7) as i8 + 1
    }

    fn quants(&self) -> [i8; SUPER_BLOCK] {
        let mut quants = [0; SUPER_BLOCK];
        for (i, octet) in quants.as_chunks_mut().0.iter_mut().enumerate() {
            let bits = nibble(self.qh[i / 2], i % 2 == 1);
            let point = grids::IQ1[usize::from(self.qs[i]) | usize::from(bits & 7) << 8];
            let shift = if bits >> 3 == 0 { 1 } else { -1 };
            *octet = iq1_octet(point).map(|value| value + shift);
        }
        quants
    }
}

impl Block for BlockIQ1M {
    const DTYPE: DType = DType::IQ1M;

    fn from_bytes(bytes: &[u8]) -> BlockIQ1M {
        let mut fields = Fields::of::<BlockIQ1M>(bytes);
        BlockIQ1M {
            qs: fields.bytes(),
            qh: fields.bytes(),
            scales: fields.bytes(),
        }
    }

    fn dequantize(&self, out: &mut [f32]) {
        scaled_quants::dequantize(self, out);
    }
}
