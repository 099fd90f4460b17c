//! Four bits per quant: byte vector `i` holds quad `2·i` in its low nibbles and `2·i + 1` in its
//! high ones. The wider layouts put their upper bits in planes behind these 256 bytes.

use super::{BLOCK, PANEL_ROWS, QUAD, QUADS, QuantLayout, lane_byte};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// Bytes of the nibbles of a sub-block.
pub(super) const NIBBLE_BYTES: usize = 64 * QUADS / 2;

/// Unsigned 4-bit quants.
pub(crate) struct U4;

/// Stores the low nibbles of 32 quants.
#[inline(always)]
pub(super) fn put_nibbles(sub_block: &mut [u8], row: usize, quants: &[u8; BLOCK]) {
    const LOW: u32 = 0x0F0F_0F0F;
    let (quads, _) = quants.as_chunks::<QUAD>();
    let (lanes, _) = sub_block[..NIBBLE_BYTES].as_chunks_mut::<QUAD>();
    for pair in 0..QUADS / 2 {
        let low = u32::from_le_bytes(quads[2 * pair]) & LOW;
        let high = u32::from_le_bytes(quads[2 * pair + 1]) & LOW;
        lanes[PANEL_ROWS * pair + row] = (low | high << 4).to_le_bytes();
    }
}

/// Reads the low nibble of element `k` of `row`.
pub(super) fn get_nibble(sub_block: &[u8], row: usize, k: usize) -> u8 {
    let byte = sub_block[64 * (k / (2 * QUAD)) + lane_byte(row, k)];
    (byte >> (4 * (k / QUAD % 2))) & 15
}

impl QuantLayout for U4 {
    const BITS: u32 = 4;
    const SUB_BLOCK_BYTES: usize = NIBBLE_BYTES;
    const IS_COMMON: bool = true;

    fn put(sub_block: &mut [u8], row: usize, quants: &[u8; BLOCK]) {
        put_nibbles(sub_block, row, quants);
    }

    fn get(sub_block: &[u8], row: usize) -> [u8; BLOCK] {
        std::array::from_fn(|k| get_nibble(sub_block, row, k))
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn pair512<const I: usize>(sub_block: *const u8) -> [__m512i; 2] {
        // SAFETY: the caller vouches for the CPU and for all 256 bytes; I < 4.
        unsafe {
            let bytes = _mm512_loadu_si512(sub_block.add(64 * I).cast());
            let mask = _mm512_set1_epi8(15);
            [
                _mm512_and_si512(bytes, mask),
                _mm512_and_si512(_mm512_srli_epi16::<4>(bytes), mask),
            ]
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn pair256<const I: usize>(sub_block: *const u8, half: usize) -> [__m256i; 2] {
        // SAFETY: the caller vouches for the CPU and for all 256 bytes; I < 4, half < 2.
        unsafe {
            let bytes = _mm256_loadu_si256(sub_block.add(64 * I + 32 * half).cast());
            let mask = _mm256_set1_epi8(15);
            [
                _mm256_and_si256(bytes, mask),
                _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), mask),
            ]
        }
    }
}
