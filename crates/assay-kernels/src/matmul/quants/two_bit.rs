//! Two bits per quant: byte vector `i / 4` holds quad `i` at bit `2·(i mod 4)` of byte (row, k mod 4).

use super::{BLOCK, QUAD, QuantLayout, lane_byte};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// Bytes of the bit pairs of a sub-block.
pub(super) const PAIR_BYTES: usize = 128;

/// Unsigned 2-bit quants.
pub(crate) struct U2;

/// Byte and bit of the pair of element `k` of `row`.
fn place(row: usize, k: usize) -> (usize, usize) {
    let quad = k / QUAD;
    (64 * (quad / 4) + lane_byte(row, k), 2 * (quad % 4))
}

impl QuantLayout for U2 {
    const SUB_BLOCK_BYTES: usize = PAIR_BYTES;

    fn put(sub_block: &mut [u8], row: usize, quants: &[u8; BLOCK]) {
        for (k, &quant) in quants.iter().enumerate() {
            let (byte, bit) = place(row, k);
            sub_block[byte] |= (quant & 3) << bit;
        }
    }

    fn get(sub_block: &[u8], row: usize) -> [u8; BLOCK] {
        std::array::from_fn(|k| {
            let (byte, bit) = place(row, k);
            sub_block[byte] >> bit & 3
        })
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn pair512<const I: usize>(sub_block: *const u8) -> [__m512i; 2] {
        // SAFETY: the caller vouches for the CPU and for all 128 bytes; I < 4.
        unsafe {
            let bytes = _mm512_loadu_si512(sub_block.add(64 * (I / 2)).cast());
            let (even, odd) = match I % 2 {
                0 => (bytes, _mm512_srli_epi16::<2>(bytes)),
                _ => (_mm512_srli_epi16::<4>(bytes), _mm512_srli_epi16::<6>(bytes)),
            };
            let mask = _mm512_set1_epi8(3);
            [_mm512_and_si512(even, mask), _mm512_and_si512(odd, mask)]
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn pair256<const I: usize>(sub_block: *const u8, half: usize) -> [__m256i; 2] {
        // SAFETY: the caller vouches for the CPU and for all 128 bytes; I < 4, half < 2.
        unsafe {
            let bytes = _mm256_loadu_si256(sub_block.add(64 * (I / 2) + 32 * half).cast());
            let (even, odd) = match I % 2 {
                0 => (bytes, _mm256_srli_epi16::<2>(bytes)),
                _ => (_mm256_srli_epi16::<4>(bytes), _mm256_srli_epi16::<6>(bytes)),
            };
            let mask = _mm256_set1_epi8(3);
            [_mm256_and_si256(even, mask), _mm256_and_si256(odd, mask)]
        }
    }
}
