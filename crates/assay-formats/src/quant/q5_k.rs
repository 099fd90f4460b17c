//! Q5_K: 256 five-bit numbers in 8 sub-blocks of 32, each with a 6-bit scale and minimum.
//!
//! `value = (d * scale) * q - (dmin * min)`; both products are exact, so the difference rounds once.

use half::f16;

use super::block::{Block, Fields, assert_block_size};
use super::k_scales::scales_and_mins;
use crate::dtype::DType;

/// One Q5_K block, fields in file order.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct BlockQ5K {
    /// Scale of the sub-block scales.
    pub d: f16,
    /// Scale of the sub-block minima.
    pub dmin: f16,
    /// Eight 6-bit scale and minimum pairs, see [`super::scales_and_mins`].
    pub scales: [u8; 12],
    /// Fifth bits: bit j of byte i belongs to element i of sub-block j.
    pub qh: [u8; 32],
    /// Low four bits: 32 bytes per pair of sub-blocks, low nibbles the even one.
    pub qs: [u8; 128],
}

assert_block_size!(BlockQ5K);

impl Block for BlockQ5K {
    const DTYPE: DType = DType::Q5K;

    fn from_bytes(bytes: &[u8]) -> BlockQ5K {
        let mut fields = Fields::of::<BlockQ5K>(bytes);
        BlockQ5K {
            d: fields.f16(),
            dmin: fields.f16(),
            scales: fields.bytes(),
            qh: fields.bytes(),
            qs: fields.bytes(),
        }
    }

    fn dequantize(&self, out: &mut [f32]) {
        assert_eq!(
            out.len(),
            BlockQ5K::DTYPE.block_len(),
            "values of one {} block",
            BlockQ5K::DTYPE
        );
        let (d, dmin) = (self.d.to_f32(), self.dmin.to_f32());
        let pairs = scales_and_mins(&self.scales);
        for (j, (values, pair)) in out.chunks_exact_mut(32).zip(pairs).enumerate() {
            let (scale, offset) = (d * f32::from(pair.scale), dmin * f32::from(pair.min));
            let shift = 4 * (j % 2);
            for ((value, &q), &qh) in values.iter_mut().zip(&self.qs[j / 2 * 32..]).zip(&self.qh) {
                let q = (q >> shift & 0x0f) | (qh >> j & 1) << 4;
                *value = scale * f32::from(q) - offset;
            }
        }
    }
}
