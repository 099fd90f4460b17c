//! How quants lie in a packed panel: 16 rows interleaved, four consecutive elements of a row (a
//! *quad*) per 32-bit lane, so that each lane of a vector is a row and block sums need no
//! horizontal add.
//!
//! A sub-block is 16 rows × 32 elements = 8 quad vectors of 64 bytes. Every quant is stored unsigned
//! (`q + zero_point`); the zero point is the format's business. Knows no scales.

mod eight_bit;
mod five_bit;
mod four_bit;
pub(crate) mod look_up;
mod six_bit;
mod three_bit;
mod two_bit;

pub(crate) use eight_bit::U8;
pub(crate) use five_bit::U5;
pub(crate) use four_bit::U4;
pub(crate) use look_up::LookUp;
pub(crate) use six_bit::U6;
pub(crate) use three_bit::U3;
pub(crate) use two_bit::U2;

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{__m256i, __m512i};

/// Rows interleaved in one panel.
pub(crate) const PANEL_ROWS: usize = 16;
/// Elements along K of one stored sub-block.
pub(crate) const BLOCK: usize = 32;
/// Elements of one row per 32-bit lane.
pub(crate) const QUAD: usize = 4;
/// Quad vectors per sub-block.
pub(crate) const QUADS: usize = BLOCK / QUAD;

/// A storage class of unsigned quants; a permutation of the bits of the source format.
pub(crate) trait QuantLayout: Send + Sync + 'static {
    /// Bits of a stored quant, 8 at most; fewer let AMX keep a block's sum in one accumulator.
    const BITS: u32 = 8;
    /// Bytes of 16 rows × 32 elements; a multiple of 64.
    const SUB_BLOCK_BYTES: usize;
    /// Whether a sub-block is its quad vectors, one after another.
    const IS_PLAIN: bool = false;
    /// Whether kernels that could share one form among layouts have one for this layout instead.
    const IS_COMMON: bool = false;

    /// Stores 32 quants of `row` (0..16) into a zeroed sub-block.
    fn put(sub_block: &mut [u8], row: usize, quants: &[u8; BLOCK]);

    /// Reads the 32 quants of `row` (0..16) back.
    fn get(sub_block: &[u8], row: usize) -> [u8; BLOCK];

    /// Quad vectors `2·I` and `2·I + 1` of a sub-block, `I` in 0..4.
    ///
    /// # Safety
    /// The CPU has AVX-512 F and BW; `sub_block` points to `SUB_BLOCK_BYTES` readable bytes.
    #[cfg(target_arch = "x86_64")]
    unsafe fn pair512<const I: usize>(sub_block: *const u8) -> [__m512i; 2];

    /// Rows `8·half..8·half + 8` of quad vectors `2·I` and `2·I + 1`.
    ///
    /// # Safety
    /// The CPU has AVX2; `sub_block` points to `SUB_BLOCK_BYTES` readable bytes; `half` is 0 or 1.
    #[cfg(target_arch = "x86_64")]
    unsafe fn pair256<const I: usize>(sub_block: *const u8, half: usize) -> [__m256i; 2];
}

/// Byte of (`row`, element `k`) in a 64-byte quad vector.
#[inline(always)]
fn lane_byte(row: usize, k: usize) -> usize {
    row * QUAD + k % QUAD
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every row and element comes back, and storing one row leaves the others alone.
    fn check_round_trip<Q: QuantLayout>(bits: u32) {
        let quant = |row: usize, k: usize| ((row * 37 + k * 11 + row * k) % (1 << bits)) as u8;
        let mut sub_block = vec![0; Q::SUB_BLOCK_BYTES];
        for row in (0..PANEL_ROWS).rev() {
            Q::put(&mut sub_block, row, &std::array::from_fn(|k| quant(row, k)));
        }
        for row in 0..PANEL_ROWS {
            let expected: [u8; BLOCK] = std::array::from_fn(|k| quant(row, k));
            assert_eq!(Q::get(&sub_block, row), expected, "bits {bits} row {row}");
        }
    }

    #[test]
    fn storing_quants_is_a_permutation() {
        check_round_trip::<U2>(2);
        check_round_trip::<U3>(3);
        check_round_trip::<U4>(4);
        check_round_trip::<U5>(5);
        check_round_trip::<U6>(6);
        check_round_trip::<U8>(8);
    }
}
