//! MXFP4: 32 four-bit floats (E2M1) with a power of two as scale (E8M0), after the OCP microscaling specification.
//!
//! `value = 2^(e - 128) * TABLE[q]`, the table holding twice the E2M1 values. Exact, subnormals included: the least
//! scale, 2^-128, is a multiple of f32's least number. ggml has no NaN scale: e = 255 is 2^127.

use super::block::{Block, Fields, assert_block_size};
use super::iq4_nl::look_up;
use crate::dtype::DType;

/// Twice what the four bits stand for: sign, two bits of exponent, one of mantissa. Both zeros are +0.
pub const MXFP4_VALUES: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// One MXFP4 block, fields in file order.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct BlockMXFP4 {
    /// Exponent of the scale.
    pub e: u8,
    /// Low nibbles: elements 0-15; high nibbles: 16-31.
    pub qs: [u8; 16],
}

assert_block_size!(BlockMXFP4);

impl BlockMXFP4 {
    /// The whole numbers that the scale multiplies.
    #[must_use]
    pub fn quants(&self) -> [i8; 32] {
        look_up(&self.qs, &MXFP4_VALUES)
    }
}

/// 2^(e − 128), exactly.
#[must_use]
pub fn mxfp4_scale(e: u8) -> f32 {
    f32::from_bits(match e {
        // Subnormal: bit 21 is 2^-128.
        0 | 1 => 0x0020_0000 << e,
        _ => u32::from(e - 1) << 23,
    })
}

impl Block for BlockMXFP4 {
    const DTYPE: DType = DType::MXFP4;

    fn from_bytes(bytes: &[u8]) -> BlockMXFP4 {
        let mut fields = Fields::of::<BlockMXFP4>(bytes);
        let [e] = fields.bytes();
        BlockMXFP4 {
            e,
            qs: fields.bytes(),
        }
    }

    fn dequantize(&self, out: &mut [f32]) {
        assert_eq!(
            out.len(),
            BlockMXFP4::DTYPE.block_len(),
            "values of one {} block",
            BlockMXFP4::DTYPE
        );
        let scale = mxfp4_scale(self.e);
        for (value, q) in out.iter_mut().zip(self.quants()) {
            *value = scale * f32::from(q);
        }
    }
}
