//! Q4_1: 32 four-bit numbers with an f16 scale and minimum.
//!
//! `value = d * q + m`; the product is exact, so the sum rounds once.

use half::f16;

use super::block::{Block, Fields, assert_block_size};
use crate::dtype::DType;

/// One Q4_1 block, fields in file order.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct BlockQ4_1 {
    /// Scale.
    pub d: f16,
    /// Minimum, added to every value.
    pub m: f16,
    /// Low nibbles: elements 0-15; high nibbles: 16-31.
    pub qs: [u8; 16],
}

assert_block_size!(BlockQ4_1);

impl Block for BlockQ4_1 {
    const DTYPE: DType = DType::Q4_1;

    fn from_bytes(bytes: &[u8]) -> BlockQ4_1 {
        let mut fields = Fields::of::<BlockQ4_1>(bytes);
        BlockQ4_1 {
            d: fields.f16(),
            m: fields.f16(),
            qs: fields.bytes(),
        }
    }

    fn dequantize(&self, out: &mut [f32]) {
        assert_eq!(
            out.len(),
            BlockQ4_1::DTYPE.block_len(),
            "values of one {} block",
            BlockQ4_1::DTYPE
        );
        let (d, m) = (self.d.to_f32(), self.m.to_f32());
        let (low, high) = out.split_at_mut(16);
        for ((low, high), &q) in low.iter_mut().zip(high).zip(&self.qs) {
            *low = d * f32::from(q & 0x0f) + m;
            *high = d * f32::from(q >> 4) + m;
        }
    }
}
