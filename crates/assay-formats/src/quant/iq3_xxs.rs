//! IQ3_XXS: 256 numbers in fours from a lattice of 256 points, signs of even number per octet, a 4-bit scale per 32.
//!
//! `value = (d * (2 * scale + 1) / 4) * point`; exact.

use half::f16;

use super::block::{Block, Fields, assert_block_size};
use super::grids;
use super::lattice::{even_signs, iq3_octet, with_signs};
use super::scaled_quants::{self, SUPER_BLOCK, ScaledQuants};
use crate::dtype::DType;

/// Element values of the lattice.
const VALUES: [i8; 8] = [4, 12, 20, 28, 36, 44, 52, 62];

/// One IQ3_XXS block, fields in file order.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct BlockIQ3XXS {
    /// Scale of the sub-block scales.
    pub d: f16,
    /// Point number of every four elements.
    pub qs: [u8; 64],
    /// Per 32 elements a little-endian word: four times seven sign bits, the scale on top.
    pub scales_and_signs: [u8; 32],
}

assert_block_size!(BlockIQ3XXS);

impl BlockIQ3XXS {
    /// Signs and scale of sub-block `j`.
    fn word(&self, j: usize) -> u32 {
        u32::from_le_bytes(std::array::from_fn(|i| self.scales_and_signs[4 * j + i]))
    }
}

impl ScaledQuants for BlockIQ3XXS {
    const SUB_BLOCK: usize = 32;
    const SCALE_DIVISOR: u8 = 4;

    fn d(&self) -> f16 {
        self.d
    }

    fn scale(&self, j: usize) -> i8 {
        2 * (self.word(j) >> 28) as i8 + 1
    }

    fn quants(&self) -> [i8; SUPER_BLOCK] {
        let mut quants = [0; SUPER_BLOCK];
        for (i, octet) in quants.as_chunks_mut().0.iter_mut().enumerate() {
            let points = [0, 1].map(|half| grids::IQ3_XXS[usize::from(self.qs[2 * i + half])]);
            let signs = even_signs(self.word(i / 4) >> (7 * (i % 4)));
            *octet = with_signs(iq3_octet(points, &VALUES), signs);
        }
        quants
    }
}

impl Block for BlockIQ3XXS {
    const DTYPE: DType = DType::IQ3XXS;

    fn from_bytes(bytes: &[u8]) -> BlockIQ3XXS {
        let mut fields = Fields::of::<BlockIQ3XXS>(bytes);
        BlockIQ3XXS {
            d: fields.f16(),
            qs: fields.bytes(),
            scales_and_signs: fields.bytes(),
        }
    }

    fn dequantize(&self, out: &mut [f32]) {
        scaled_quants::dequantize(self, out);
    }
}
