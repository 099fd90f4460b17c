//! Eight bits per quant: quad vector `i` is bytes `64·i..64·i + 64`.

use super::{BLOCK, QUAD, QUADS, QuantLayout, lane_byte};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// Unsigned 8-bit quants.
pub(crate) struct U8;

impl QuantLayout for U8 {
    const SUB_BLOCK_BYTES: usize = 64 * QUADS;
    const IS_PLAIN: bool = true;
    const IS_COMMON: bool = true;

    fn put(sub_block: &mut [u8], row: usize, quants: &[u8; BLOCK]) {
        for (quad, values) in quants.chunks_exact(QUAD).enumerate() {
            let at = 64 * quad + row * QUAD;
            sub_block[at..at + QUAD].copy_from_slice(values);
        }
    }

    fn get(sub_block: &[u8], row: usize) -> [u8; BLOCK] {
        std::array::from_fn(|k| sub_block[64 * (k / QUAD) + lane_byte(row, k)])
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn pair512<const I: usize>(sub_block: *const u8) -> [__m512i; 2] {
        // SAFETY: the caller vouches for the CPU and for all 512 bytes; I < 4.
        unsafe {
            [
                _mm512_loadu_si512(sub_block.add(128 * I).cast()),
                _mm512_loadu_si512(sub_block.add(128 * I + 64).cast()),
            ]
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn pair256<const I: usize>(sub_block: *const u8, half: usize) -> [__m256i; 2] {
        // SAFETY: the caller vouches for the CPU and for all 512 bytes; I < 4, half < 2.
        unsafe {
            [
                _mm256_loadu_si256(sub_block.add(128 * I + 32 * half).cast()),
                _mm256_loadu_si256(sub_block.add(128 * I + 64 + 32 * half).cast()),
            ]
        }
    }
}
