//! IQ3_S: 256 numbers in fours from a lattice of 512 points, a sign bit each, a 4-bit scale per 32.
//!
//! `value = (d * (2 * scale + 1)) * point`; exact.

use half::f16;

use super::block::{Block, Fields, assert_block_size};
use super::grids;
use super::lattice::{iq3_octet, odd_scale, with_signs};
use super::scaled_quants::{self, SUPER_BLOCK, ScaledQuants};
use crate::dtype::DType;

/// Element values of the lattice.
const VALUES: [i8; 8] = [1, 3, 5, 7, 9, 11, 13, 15];

/// One IQ3_S block, fields in file order.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct BlockIQ3S {
    /// Scale of the sub-block scales.
    pub d: f16,
    /// Low eight bits of the point number of every four elements.
    pub qs: [u8; 64],
    /// Ninth bits of the point numbers, eight a byte, lowest first.
    pub qh: [u8; 8],
    /// Sign bits of each octet.
    pub signs: [u8; 32],
    /// Sub-block scales, a nibble each, low ones first.
    pub scales: [u8; 4],
}

assert_block_size!(BlockIQ3S);

impl ScaledQuants for BlockIQ3S {
    const SUB_BLOCK: usize = 32;
    const SCALE_DIVISOR: u8 = 1;

    fn d(&self) -> f16 {
        self.d
    }

    fn scale(&self, j: usize) -> i8 {
        odd_scale(&self.scales, j)
    }

    fn quants(&self) -> [i8; SUPER_BLOCK] {
        let mut quants = [0; SUPER_BLOCK];
        for (i, octet) in quants.as_chunks_mut().0.iter_mut().enumerate() {
            let points = [2 * i, 2 * i + 1].map(|at| {
                let ninth = self.qh[at / 8] >> (at % 8) & 1;
                grids::IQ3_S[usize::from(self.qs[at]) | usize::from(ninth) << 8]
            });
            *octet = with_signs(iq3_octet(points, &VALUES), self.signs[i]);
        }
        quants
    }
}

impl Block for BlockIQ3S {
    const DTYPE: DType = DType::IQ3S;

    fn from_bytes(bytes: &[u8]) -> BlockIQ3S {
        let mut fields = Fields::of::<BlockIQ3S>(bytes);
        BlockIQ3S {
            d: fields.f16(),
            qs: fields.bytes(),
            qh: fields.bytes(),
            signs: fields.bytes(),
            scales: fields.bytes(),
        }
    }

    fn dequantize(&self, out: &mut [f32]) {
        scaled_quants::dequantize(self, out);
    }
}
