//! Q5_0: 32 five-bit numbers, offset by 16, and one f16 scale.
//!
//! `value = d * (q - 16)`

use half::f16;

use super::block::{Block, Fields, assert_block_size};
use crate::dtype::DType;

/// One Q5_0 block, fields in file order.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct BlockQ5_0 {
    /// Scale.
    pub d: f16,
    /// Fifth bits: bit i of the little-endian u32 belongs to element i.
    pub qh: [u8; 4],
    /// Low four bits. Low nibbles: elements 0-15; high nibbles: 16-31.
    pub qs: [u8; 16],
}

assert_block_size!(BlockQ5_0);

impl Block for BlockQ5_0 {
    const DTYPE: DType = DType::Q5_0;

    fn from_bytes(bytes: &[u8]) -> BlockQ5_0 {
        let mut fields = Fields::of::<BlockQ5_0>(bytes);
        BlockQ5_0 {
            d: fields.f16(),
            qh: fields.bytes(),
            qs: fields.bytes(),
        }
    }

    fn dequantize(&self, out: &mut [f32]) {
        assert_eq!(
            out.len(),
            BlockQ5_0::DTYPE.block_len(),
            "values of one {} block",
            BlockQ5_0::DTYPE
        );
        let d = self.d.to_f32();
        let qh = u32::from_le_bytes(self.qh);
        let fifth = |element: usize| ((qh >> element) as u8 & 1) << 4;
        let (low, high) = out.split_at_mut(16);
        for (i, ((low, high), &q)) in low.iter_mut().zip(high).zip(&self.qs).enumerate() {
            *low = d * f32::from((q & 0x0f | fifth(i)).cast_signed() - 16);
            *high = d * f32::from((q >> 4 | fifth(i + 16)).cast_signed() - 16);
        }
    }
}
