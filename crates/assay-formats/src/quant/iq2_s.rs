//! IQ2_S: 256 numbers in octets from a lattice of 1,024 points, a sign bit each, a 4-bit scale per 16.
//!
//! `value = (d * (2 * scale + 1) / 8) * point`; exact.

use half::f16;

use super::block::{Block, Fields, assert_block_size};
use super::grids;
use super::lattice::{iq2_octet, odd_scale, with_signs};
use super::scaled_quants::{self, SUPER_BLOCK, ScaledQuants};
use crate::dtype::DType;

/// One IQ2_S block, fields in file order.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct BlockIQ2S {
    /// Scale of the sub-block scales.
    pub d: f16,
    /// Low eight bits of each octet's point number.
    pub qs: [u8; 32],
    /// Sign bits of each octet.
    pub signs: [u8; 32],
    /// Top two bits of the point numbers, four octets a byte, lowest first.
    pub qh: [u8; 8],
    /// Sub-block scales, a nibble each, low ones first.
    pub scales: [u8; 8],
}

assert_block_size!(BlockIQ2S);

impl ScaledQuants for BlockIQ2S {
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
        for (i, octet) in quants.as_chunks_mut().0.iter_mut().enumerate() {
            let high = self.qh[i / 4] >> (2 * (i % 4)) & 3;
            let point = grids::IQ2_S[usize::from(self.qs[i]) | usize::from(high) << 8];
            *octet = with_signs(iq2_octet(point), self.signs[i]);
        }
        quants
    }
}

impl Block for BlockIQ2S {
    const DTYPE: DType = DType::IQ2S;

    fn from_bytes(bytes: &[u8]) -> BlockIQ2S {
        let mut fields = Fields::of::<BlockIQ2S>(bytes);
        BlockIQ2S {
            d: fields.f16(),
            qs: fields.bytes(),
            signs: fields.bytes(),
            qh: fields.bytes(),
            scales: fields.bytes(),
        }
    }

    fn dequantize(&self, out: &mut [f32]) {
        scaled_quants::dequantize(self, out);
    }
}
