//! IQ2_XXS: 256 numbers in octets from a lattice of 256 points, signs of even number, a 4-bit scale per 32.
//!
//! `value = (d * (2 * scale + 1) / 8) * point`; exact.

use half::f16;

use super::block::{Block, Fields, assert_block_size};
use super::grids;
use super::lattice::{even_signs, iq2_octet, with_signs};
use super::scaled_quants::{self, SUPER_BLOCK, ScaledQuants};
use crate::dtype::DType;

/// One IQ2_XXS block, fields in file order.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct BlockIQ2XXS {
    /// Scale of the sub-block scales.
    pub d: f16,
    /// Per 32 elements four point numbers, then a little-endian word: four times seven sign bits, the scale on top.
    pub qs: [u8; 64],
}

assert_block_size!(BlockIQ2XXS);

impl BlockIQ2XXS {
    /// Point numbers and word of sub-block `j`.
    fn sub_block(&self, j: usize) -> ([u8; 4], u32) {
        let bytes: [u8; 8] = std::array::from_fn(|i| self.qs[8 * j + i]);
        let [p0, p1, p2, p3, word @ ..] = bytes;
        ([p0, p1, p2, p3], u32::from_le_bytes(word))
    }
}

impl ScaledQuants for BlockIQ2XXS {
    const SUB_BLOCK: usize = 32;
    const SCALE_DIVISOR: u8 = 8;

    fn d(&self) -> f16 {
        self.d
    }

    fn scale(&self, j: usize) -> i8 {
        let (_, word) = self.sub_block(j);
        2 * (word >> 28) as i8 + 1
    }

    fn quants(&self) -> [i8; SUPER_BLOCK] {
        let mut quants = [0; SUPER_BLOCK];
        for (i, octet) in quants.as_chunks_mut().0.iter_mut().enumerate() {
            let (points, word) = self.sub_block(i / 4);
            let point = grids::IQ2_XXS[usize::from(points[i % 4])];
            *octet = with_signs(iq2_octet(point), even_signs(word >> (7 * (i % 4))));
        }
        quants
    }
}

impl Block for BlockIQ2XXS {
    const DTYPE: DType = DType::IQ2XXS;

    fn from_bytes(bytes: &[u8]) -> BlockIQ2XXS {
        let mut fields = Fields::of::<BlockIQ2XXS>(bytes);
        BlockIQ2XXS {
            d: fields.f16(),
            qs: fields.bytes(),
        }
    }

    fn dequantize(&self, out: &mut [f32]) {
        scaled_quants::dequantize(self, out);
    }
}
