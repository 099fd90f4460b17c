//! What all block formats share: fixed size, fields in file order, a formula.

use half::f16;

use crate::dtype::DType;

/// A block format: so many elements in so many bytes.
pub trait Block: Sized {
    /// The element type whose blocks these are.
    const DTYPE: DType;

    /// Takes the fields apart.
    ///
    /// # Panics
    /// When `bytes` is not exactly one block long.
    fn from_bytes(bytes: &[u8]) -> Self;

    /// Writes the block's exact values.
    ///
    /// # Panics
    /// When `out` is not exactly one block long.
    fn dequantize(&self, out: &mut [f32]);
}

/// Dequantises whole blocks; the caller has matched both lengths.
pub(super) fn dequantize<B: Block>(bytes: &[u8], out: &mut [f32]) {
    let blocks = bytes.chunks_exact(B::DTYPE.block_bytes());
    for (block, out) in blocks.zip(out.chunks_exact_mut(B::DTYPE.block_len())) {
        B::from_bytes(block).dequantize(out);
    }
}

/// Checks at compile time that a block struct is as large as its format says.
macro_rules! assert_block_size {
    ($block:ty) => {
        const _: () = assert!(size_of::<$block>() == <$block as Block>::DTYPE.block_bytes());
    };
}
pub(super) use assert_block_size;

/// Reads the fields of one block in file order.
pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn of<B: Block>(bytes: &'a [u8]) -> Fields<'a> {
        assert_eq!(
            bytes.len(),
            B::DTYPE.block_bytes(),
            "bytes of one {} block",
            B::DTYPE
        );
        Fields(bytes)
    }

    pub(super) fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let (field, rest) = self
            .0
            .split_first_chunk()
            .expect("the fields of a block sum to its length");
        self.0 = rest;
        *field
    }

    pub(super) fn f16(&mut self) -> f16 {
        f16::from_le_bytes(self.bytes())
    }
}
