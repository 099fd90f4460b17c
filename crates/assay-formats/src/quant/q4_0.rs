//! Q4_0: 32 four-bit numbers, offset by 8, and one f16 scale.
//!
//! `value = d * (q - 8)`

use half::f16;

use super::block::{Block, Fields, assert_block_size};
use crate::dtype::DType;

/// One Q4_0 block, fields in file order.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct BlockQ4_0 {
    /// Scale.
    pub d: f16,
    /// Low nibbles: elements 0-15; high nibbles: 16-31.
    pub qs: [u8; 16],
}

assert_block_size!(BlockQ4_0);

impl Block for BlockQ4_0 {
    const DTYPE: DType = DType::Q4_0;

    fn from_bytes(bytes: &[u8]) -> BlockQ4_0 {
        let mut fields = Fields::of::<BlockQ4_0>(bytes);
        BlockQ4_0 {
            d: fields.f16(),
            qs: fields.bytes(),
        }
    }

    fn dequantize(&self, out: &mut [f32]) {
        assert_eq!(
            out.len(),
            BlockQ4_0::DTYPE.block_len(),
            "values of one {} block",
            BlockQ4_0::DTYPE
        );
        let d = self.d.to_f32();
        let (low, high) = out.split_at_mut(16);
        for ((low, high), &q) in low.iter_mut().zip(high).zip(&self.qs) {
            *low = d * f32::from((q & 0x0f).cast_signed() - 8);
            *high = d * f32::from((q >> 4).cast_signed() - 8);
        }
    }
}
