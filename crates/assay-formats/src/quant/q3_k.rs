//! Q3_K: 256 three-bit signed numbers in 16 sub-blocks of 16, each with a 6-bit signed scale.
//!
//! `value = (d * (scale - 32)) * (q - (4 if the high bit is clear))`; exact.

use half::f16;

use super::block::{Block, Fields, assert_block_size};
use crate::dtype::DType;

/// One Q3_K block, fields in file order.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct BlockQ3K {
    /// Bit k of byte i: when clear, 4 is taken from element 32k+i.
    pub hmask: [u8; 32],
    /// Low two bits: per half of 128, 32 bytes; bit pair k belongs to elements 32k to 32k+31.
    pub qs: [u8; 64],
    /// Sixteen 6-bit scales, offset by 32: low nibbles then high nibbles of bytes 0-7 hold the low four bits, bytes 8-11 the top two.
    pub scales: [u8; 12],
    /// Scale of the sub-block scales.
    pub d: f16,
}

assert_block_size!(BlockQ3K);

impl Block for BlockQ3K {
    const DTYPE: DType = DType::Q3K;

    fn from_bytes(bytes: &[u8]) -> BlockQ3K {
        let mut fields = Fields::of::<BlockQ3K>(bytes);
        BlockQ3K {
            hmask: fields.bytes(),
            qs: fields.bytes(),
            scales: fields.bytes(),
            d: fields.f16(),
        }
    }

    fn dequantize(&self, out: &mut [f32]) {
        assert_eq!(
            out.len(),
            BlockQ3K::DTYPE.block_len(),
            "values of one {} block",
            BlockQ3K::DTYPE
        );
        let d = self.d.to_f32();
        for (j, values) in out.chunks_exact_mut(16).enumerate() {
            let low = self.scales[j % 8] >> (j / 8 * 4) & 0x0f;
            let high = self.scales[8 + j % 4] >> (j / 4 * 2) & 3;
            let scale = d * f32::from((low | high << 4).cast_signed() - 32);
            let (half, begin) = (j / 8, j % 8 * 16);
            let (shift, high_bit) = (begin / 32 * 2, j / 2);
            let qs = &self.qs[half * 32 + begin % 32..];
            let hmask = &self.hmask[begin % 32..];
            for ((value, &q), &high) in values.iter_mut().zip(qs).zip(hmask) {
                let q =
                    (q >> shift & 3).cast_signed() - if high >> high_bit & 1 == 0 { 4 } else { 0 };
                *value = scale * f32::from(q);
            }
        }
    }
}
