//! What the 256-element formats without an offset share: whole numbers times a scale that is exact in f32.
//!
//! Their values are defined by [`ScaledQuants`], so the integers that a kernel multiplies and the values that a test
//! compares come from the same reading of the bytes.

use half::f16;

use super::block::Block;

/// Elements of a block.
pub const SUPER_BLOCK: usize = 256;

/// A block of 256 elements: `value = (d · scale / SCALE_DIVISOR) · quant`.
///
/// The product of an f16, an integer of 6 bits and a power of two is exact in f32, and so is its product with a quant
/// of 8 bits: 11 + 5 + 7 significant bits, and no f16 is small enough for the result to be subnormal.
pub trait ScaledQuants: Block {
    /// Elements that share a scale: 16 or 32.
    const SUB_BLOCK: usize;
    /// A power of two.
    const SCALE_DIVISOR: u8;

    /// Scale of the sub-block scales.
    fn d(&self) -> f16;

    /// Scale of sub-block `j`, -32 to 31.
    fn scale(&self, j: usize) -> i8;

    /// The whole numbers.
    fn quants(&self) -> [i8; SUPER_BLOCK];
}

/// Writes the values of one block.
pub(super) fn dequantize<B: ScaledQuants>(block: &B, out: &mut [f32]) {
    assert_eq!(out.len(), SUPER_BLOCK, "values of one {} block", B::DTYPE);
    let unit = block.d().to_f32() / f32::from(B::SCALE_DIVISOR);
    let quants = block.quants();
    let sub_blocks = quants.chunks_exact(B::SUB_BLOCK);
    for (j, (values, quants)) in out
        .chunks_exact_mut(B::SUB_BLOCK)
        .zip(sub_blocks)
        .enumerate()
    {
        let weight = unit * f32::from(block.scale(j));
        for (value, &q) in values.iter_mut().zip(quants) {
            *value = weight * f32::from(q);
        }
    }
}
