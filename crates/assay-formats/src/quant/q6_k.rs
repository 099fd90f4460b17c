//! Q6_K: 256 six-bit numbers, offset by 32, in 16 sub-blocks of 16, each with a signed 8-bit scale.
//!
//! `value = (d * scale) * (q - 32)`; exact.

use half::f16;

use super::block::{Block, Fields, assert_block_size};
use crate::dtype::DType;

/// One Q6_K block, fields in file order.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct BlockQ6K {
    /// Low four bits: per half of 128, low nibbles of 64 bytes are elements 0-63, high nibbles 64-127.
    pub ql: [u8; 128],
    /// Top two bits: per half of 128, 32 bytes; bit pair k belongs to elements 32k to 32k+31.
    pub qh: [u8; 64],
    /// Sub-block scales, two's complement.
    pub scales: [u8; 16],
    /// Scale of the sub-block scales.
    pub d: f16,
}

assert_block_size!(BlockQ6K);

impl Block for BlockQ6K {
    const DTYPE: DType = DType::Q6K;

    fn from_bytes(bytes: &[u8]) -> BlockQ6K {
        let mut fields = Fields::of::<BlockQ6K>(bytes);
        BlockQ6K {
            ql: fields.bytes(),
            qh: fields.bytes(),
            scales: fields.bytes(),
            d: fields.f16(),
        }
    }

    fn dequantize(&self, out: &mut [f32]) {
        assert_eq!(
            out.len(),
            BlockQ6K::DTYPE.block_len(),
            "values of one {} block",
            BlockQ6K::DTYPE
        );
        let d = self.d.to_f32();
        for (j, (values, &scale)) in out.chunks_exact_mut(16).zip(&self.scales).enumerate() {
            let scale = d * f32::from(scale.cast_signed());
            let (half, begin) = (j / 8, j % 8 * 16);
            let (low_shift, high_shift) = (begin / 64 * 4, begin / 32 * 2);
            let ql = &self.ql[half * 64 + begin % 64..];
            let qh = &self.qh[half * 32 + begin % 32..];
            for ((value, &low), &high) in values.iter_mut().zip(ql).zip(qh) {
                let q = (low >> low_shift & 0x0f) | (high >> high_shift & 3) << 4;
                *value = scale * f32::from(q.cast_signed() - 32);
            }
        }
    }
}
