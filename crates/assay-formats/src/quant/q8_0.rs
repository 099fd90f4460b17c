//! Q8_0: 32 signed bytes and one f16 scale.
//!
//! `value = q * d`

use half::f16;

use super::block::{Block, Fields, assert_block_size};
use crate::dtype::DType;

/// One Q8_0 block, fields in file order.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct BlockQ8_0 {
    /// Scale.
    pub d: f16,
    /// Elements in order, two's complement.
    pub qs: [u8; 32],
}

assert_block_size!(BlockQ8_0);

impl Block for BlockQ8_0 {
    const DTYPE: DType = DType::Q8_0;

    fn from_bytes(bytes: &[u8]) -> BlockQ8_0 {
        let mut fields = Fields::of::<BlockQ8_0>(bytes);
        BlockQ8_0 {
            d: fields.f16(),
            qs: fields.bytes(),
        }
    }

    fn dequantize(&self, out: &mut [f32]) {
        assert_eq!(
            out.len(),
            BlockQ8_0::DTYPE.block_len(),
            "values of one {} block",
            BlockQ8_0::DTYPE
        );
        let d = self.d.to_f32();
        for (value, &q) in out.iter_mut().zip(&self.qs) {
            *value = f32::from(q.cast_signed()) * d;
        }
    }
}
