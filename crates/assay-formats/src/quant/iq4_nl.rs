//! IQ4_NL: 32 numbers looked up in a table of 16, with an f16 scale.
//!
//! `value = d * TABLE[q]`; exact.

use half::f16;

use super::block::{Block, Fields, assert_block_size};
use crate::dtype::DType;

/// What the four bits of IQ4_NL and IQ4_XS stand for: finer near zero, where weights are dense.
pub const IQ4_VALUES: [i8; 16] = [
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113,
];

/// One IQ4_NL block, fields in file order.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct BlockIQ4NL {
    /// Scale.
    pub d: f16,
    /// Low nibbles: elements 0-15; high nibbles: 16-31.
    pub qs: [u8; 16],
}

assert_block_size!(BlockIQ4NL);

/// Looks up the nibbles of 16 bytes in `table`: low nibbles are elements 0-15, high nibbles 16-31.
pub(super) fn look_up(qs: &[u8; 16], table: &[i8; 16]) -> [i8; 32] {
    std::array::from_fn(|k| table[usize::from(qs[k % 16] >> (k / 16 * 4) & 15)])
}

impl BlockIQ4NL {
    /// The whole numbers that `d` scales.
    #[must_use]
    pub fn quants(&self) -> [i8; 32] {
        look_up(&self.qs, &IQ4_VALUES)
    }
}

impl Block for BlockIQ4NL {
    const DTYPE: DType = DType::IQ4NL;

    fn from_bytes(bytes: &[u8]) -> BlockIQ4NL {
        let mut fields = Fields::of::<BlockIQ4NL>(bytes);
        BlockIQ4NL {
            d: fields.f16(),
            qs: fields.bytes(),
        }
    }

    fn dequantize(&self, out: &mut [f32]) {
        assert_eq!(
            out.len(),
            BlockIQ4NL::DTYPE.block_len(),
            "values of one {} block",
            BlockIQ4NL::DTYPE
        );
        let d = self.d.to_f32();
        for (value, q) in out.iter_mut().zip(self.quants()) {
            *value = d * f32::from(q);
        }
    }
}
