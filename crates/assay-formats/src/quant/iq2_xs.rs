//! IQ2_XS: 256 numbers in octets from a lattice of 512 points, signs of even number, a 4-bit scale per 16.
//!
//! `value = (d * (2 * scale + 1) / 8) * point`; exact.

use half::f16;

use super::block::{Block, Fields, assert_block_size};
use super::grids;
use super::lattice::{even_signs, iq2_octet, odd_scale, with_signs};
use super::scaled_quants::{self, SUPER_BLOCK, ScaledQuants};
use crate::dtype::DType;

/// One IQ2_XS block, fields in file order.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct BlockIQ2XS {
    /// Scale of the sub-block scales.
    pub d: f16,
    /// Per octet a little-endian word: nine bits of point number, seven sign bits.
    pub qs: [u8; 64],
    /// Sub-block scales, a nibble each, low ones first.
    pub scales: [u8; 8],
}

assert_block_size!(BlockIQ2XS);

impl ScaledQuants for BlockIQ2XS {
    const SUB_BLOCK: usize = 16;
    const SCALE_DIVISOR: u8 = 8;

    fn d(&self) -> f16 {
        self.d
    }

    fn scale(&self, j: usize) -> i8 {
        odd_scale(&self.scales, j)
    }

    fn quants(&self) -> [i8; SUPER_BLOCK] {
        let mut quants = [0; SUPER_BLOCK];
        let words = self.qs.as_chunks().0;
        for (octet, word) in quants.as_chunks_mut().0.iter_mut().zip(words) {
            let word = u16::from_le_bytes(*word);
            let point = grids::IQ2_XS[usize::from(word & 511)];
            *octet = with_signs(iq2_octet(point), even_signs(u32::from(word >> 9)));
        }
        quants
    }
}

impl Block for BlockIQ2XS {
    const DTYPE: DType = DType::IQ2XS;

    fn from_bytes(bytes: &[u8]) -> BlockIQ2XS {
        let mut fields = Fields::of::<BlockIQ2XS>(bytes);
        BlockIQ2XS {
            d: fields.f16(),
            qs: fields.bytes(),
            scales: fields.bytes(),
        }
    }

    fn dequantize(&self, out: &mut [f32]) {
        scaled_quants::dequantize(self, out);
    }
}
