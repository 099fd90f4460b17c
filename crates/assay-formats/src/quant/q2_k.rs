//! Q2_K: 256 two-bit numbers in 16 sub-blocks of 16, each with a 4-bit scale and minimum.
//!
//! `value = (d * scale) * q - (dmin * min)`; both products are exact, so the difference rounds once.

use half::f16;

use super::block::{Block, Fields, assert_block_size};
use crate::dtype::DType;

/// One Q2_K block, fields in file order.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct BlockQ2K {
    /// Per sub-block: scale in the low nibble, minimum in the high one.
    pub scales: [u8; 16],
    /// Per half of 128, 32 bytes; bit pair k belongs to elements 32k to 32k+31.
    pub qs: [u8; 64],
    /// Scale of the sub-block scales.
    pub d: f16,
    /// Scale of the sub-block minima.
    pub dmin: f16,
}

assert_block_size!(BlockQ2K);

impl Block for BlockQ2K {
    const DTYPE: DType = DType::Q2K;

    fn from_bytes(bytes: &[u8]) -> BlockQ2K {
        let mut fields = Fields::of::<BlockQ2K>(bytes);
        BlockQ2K {
            scales: fields.bytes(),
            qs: fields.bytes(),
            d: fields.f16(),
            dmin: fields.f16(),
        }
    }

    fn dequantize(&self, out: &mut [f32]) {
        assert_eq!(
            out.len(),
            BlockQ2K::DTYPE.block_len(),
            "values of one {} block",
            BlockQ2K::DTYPE
        );
        let (d, dmin) = (self.d.to_f32(), self.dmin.to_f32());
        for (j, (values, &pair)) in out.chunks_exact_mut(16).zip(&self.scales).enumerate() {
            let (scale, offset) = (d * f32::from(pair & 0x0f), dmin * f32::from(pair >> 4));
            let (half, begin) = (j / 8, j % 8 * 16);
            let shift = begin / 32 * 2;
            for (value, &q) in values.iter_mut().zip(&self.qs[half * 32 + begin % 32..]) {
                *value = scale * f32::from(q >> shift & 3) - offset;
            }
        }
    }
}
