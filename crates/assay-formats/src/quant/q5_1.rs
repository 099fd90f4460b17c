//! Q5_1: 32 five-bit numbers with an f16 scale and minimum.
//!
//! `value = d * q + m`; the product is exact, so the sum rounds once.

use half::f16;

use super::block::{Block, Fields, assert_block_size};
use crate::dtype::DType;

/// One Q5_1 block, fields in file order.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct BlockQ5_1 {
    /// Scale.
    pub d: f16,
    /// Minimum, added to every value.
    pub m: f16,
    /// Fifth bits: bit i of the little-endian u32 belongs to element i.
    pub qh: [u8; 4],
    /// Low four bits. Low nibbles: elements 0-15; high nibbles: 16-31.
    pub qs: [u8; 16],
}

assert_block_size!(BlockQ5_1);

impl Block for BlockQ5_1 {
    const DTYPE: DType = DType::Q5_1;

    fn from_bytes(bytes: &[u8]) -> BlockQ5_1 {
        let mut fields = Fields::of::<BlockQ5_1>(bytes);
        BlockQ5_1 {
            d: fields.f16(),
            m: fields.f16(),
            qh: fields.bytes(),
            qs: fields.bytes(),
        }
    }

    fn dequantize(&self, out: &mut [f32]) {
        assert_eq!(
            out.len(),
            BlockQ5_1::DTYPE.block_len(),
            "values of one {} block",
            BlockQ5_1::DTYPE
        );
        let (d, m) = (self.d.to_f32(), self.m.to_f32());
        let qh = u32::from_le_bytes(self.qh);
        let fifth = |element: usize| ((qh >> element) as u8 & 1) << 4;
        let (low, high) = out.split_at_mut(16);
        for (i, ((low, high), &q)) in low.iter_mut().zip(high).zip(&self.qs).enumerate() {
            *low = d * f32::from(q & 0x0f | fifth(i)) + m;
            *high = d * f32::from(q >> 4 | fifth(i + 16)) + m;
        }
    }
}
