//! IQ4_XS: 256 numbers looked up in the table of IQ4_NL, with a 6-bit signed scale per 32.
//!
//! `value = (d * (scale - 32)) * TABLE[q]`; exact.

use half::f16;

use super::block::{Block, Fields, assert_block_size};
use super::iq4_nl::{IQ4_VALUES, look_up};
use super::lattice::nibble;
use super::scaled_quants::{self, SUPER_BLOCK, ScaledQuants};
use crate::dtype::DType;

/// One IQ4_XS block, fields in file order.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct BlockIQ4XS {
    /// Scale of the sub-block scales.
    pub d: f16,
    /// Top two bits of the eight scales, a little-endian word, lowest first.
    pub scales_h: [u8; 2],
    /// Low four bits of the scales, low nibbles first.
    pub scales_l: [u8; 4],
    /// Per 32 elements 16 bytes: low nibbles are elements 0-15, high nibbles 16-31.
    pub qs: [u8; 128],
}

assert_block_size!(BlockIQ4XS);

impl ScaledQuants for BlockIQ4XS {
    const SUB_BLOCK: usize = 32;
    const SCALE_DIVISOR: u8 = 1;

    fn d(&self) -> f16 {
        self.d
    }

    fn scale(&self, j: usize) -> i8 {
        let low = nibble(self.scales_l[j / 2], j % 2 == 1);
        let high = (u16::from_le_bytes(self.scales_h) >> (2 * j) & 3) as u8;
        (low | high << 4).cast_signed() - 32
    }

    fn quants(&self) -> [i8; SUPER_BLOCK] {
        let mut quants = [0; SUPER_BLOCK];
        let bytes = self.qs.as_chunks().0;
        for (quants, bytes) in quants.as_chunks_mut().0.iter_mut().zip(bytes) {
            *quants = look_up(bytes, &IQ4_VALUES);
        }
        quants
    }
}

impl Block for BlockIQ4XS {
    const DTYPE: DType = DType::IQ4XS;

    fn from_bytes(bytes: &[u8]) -> BlockIQ4XS {
        let mut fields = Fields::of::<BlockIQ4XS>(bytes);
        BlockIQ4XS {
            d: fields.f16(),
            scales_h: fields.bytes(),
            scales_l: fields.bytes(),
            qs: fields.bytes(),
        }
    }

    fn dequantize(&self, out: &mut [f32]) {
        scaled_quants::dequantize(self, out);
    }
}
