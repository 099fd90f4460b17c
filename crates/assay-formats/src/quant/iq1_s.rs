//! IQ1_S: 256 ternary numbers in octets from a lattice of 2,048 points, all shifted by an eighth up or down, with a
//! 3-bit scale per 32.
//!
//! `value = (d * (2 * scale + 1)) * (point ± 1/8)`, here with whole numbers: `(d * (2 * scale + 1) / 8) * (8 * point ± 1)`;
//! exact both ways.

use half::f16;

use super::block::{Block, Fields, assert_block_size};
use super::grids;
use super::lattice::iq1_octet;
use super::scaled_quants::{self, SUPER_BLOCK, ScaledQuants};
use crate::dtype::DType;

/// One IQ1_S block, fields in file order.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct BlockIQ1S {
    /// Scale of the sub-block scales.
    pub d: f16,
    /// Low eight bits of each octet's point number.
    pub qs: [u8; 32],
    /// Per 32 elements a little-endian word: four times the top three bits of a point number, the scale, and the
    /// direction of the shift (set: down).
    pub qh: [u8; 16],
}

assert_block_size!(BlockIQ1S);

impl BlockIQ1S {
    /// The word of sub-block `j`.
    fn word(&self, j: usize) -> u16 {
        u16::from_le_bytes([self.qh[2 * j], self.qh[2 * j + 1]])
    }
}

impl ScaledQuants for BlockIQ1S {
    const SUB_BLOCK: usize = 32;
    const SCALE_DIVISOR: u8 = 8;

    fn d(&self) -> f16 {
        self.d
    }

    fn scale(&self, j: usize) -> i8 {
        2 * (self.word(j) >> 12 & 7) as i8 + 1
    }

    fn quants(&self) -> [i8; SUPER_BLOCK] {
        let mut quants = [0; SUPER_BLOCK];
        for (i, octet) in quants.as_chunks_mut().0.iter_mut().enumerate() {
            let word = self.word(i / 4);
            let high = word >> (3 * (i % 4)) & 7;
            let point = grids::IQ1[usize::from(self.qs[i]) | usize::from(high) << 8];
            let shift = if word >> 15 == 0 { 1 } else { -1 };
            *octet = iq1_octet(point).map(|value| value + shift);
        }
        quants
    }
}

impl Block for BlockIQ1S {
    const DTYPE: DType = DType::IQ1S;

    fn from_bytes(bytes: &[u8]) -> BlockIQ1S {
        let mut fields = Fields::of::<BlockIQ1S>(bytes);
        BlockIQ1S {
            d: fields.f16(),
            qs: fields.bytes(),
            qh: fields.bytes(),
        }
    }

    fn dequantize(&self, out: &mut [f32]) {
        scaled_quants::dequantize(self, out);
    }
}
