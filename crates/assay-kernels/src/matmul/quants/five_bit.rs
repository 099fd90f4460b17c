//! Five bits per quant: the nibbles of [`U4`], then one 64-byte plane whose byte
//! (row, k mod 4) holds the fifth bit of quad `i` as its bit `i`.

use super::four_bit::{NIBBLE_BYTES, U4, get_nibble, put_nibbles};
use super::{BLOCK, QUAD, QuantLayout, lane_byte};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// Unsigned 5-bit quants.
pub(crate) struct U5;

impl QuantLayout for U5 {
    const BITS: u32 = 5;
    const SUB_BLOCK_BYTES: usize = NIBBLE_BYTES + 64;
    const IS_COMMON: bool = true;

    fn put(sub_block: &mut [u8], row: usize, quants: &[u8; BLOCK]) {
        put_nibbles(sub_block, row, quants);
        for (k, &quant) in quants.iter().enumerate() {
            sub_block[NIBBLE_BYTES + lane_byte(row, k)] |= (quant >> 4 & 1) << (k / QUAD);
        }
    }

    fn get(sub_block: &[u8], row: usize) -> [u8; BLOCK] {
        std::array::from_fn(|k| {
            let plane = sub_block[NIBBLE_BYTES + lane_byte(row, k)];
            get_nibble(sub_block, row, k) | (plane >> (k / QUAD) & 1) << 4
        })
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn pair512<const I: usize>(sub_block: *const u8) -> [__m512i; 2] {
        // SAFETY: the caller vouches for the CPU and for all 320 bytes; I < 4.
        unsafe {
            let [low, high] = U4::pair512::<I>(sub_block);
            let plane = _mm512_loadu_si512(sub_block.add(NIBBLE_BYTES).cast());
            // Bits 2·I and 2·I + 1 move to bit 4; what leaks in from the neighbour byte is masked.
            let (even, odd) = match I {
                0 => (_mm512_slli_epi16::<4>(plane), _mm512_slli_epi16::<3>(plane)),
                1 => (_mm512_slli_epi16::<2>(plane), _mm512_slli_epi16::<1>(plane)),
                2 => (plane, _mm512_srli_epi16::<1>(plane)),
                _ => (_mm512_srli_epi16::<2>(plane), _mm512_srli_epi16::<3>(plane)),
            };
            let mask = _mm512_set1_epi8(16);
            // 0xF8: low | (plane & mask).
            [
                _mm512_ternarylogic_epi32::<0xF8>(low, even, mask),
                _mm512_ternarylogic_epi32::<0xF8>(high, odd, mask),
            ]
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn pair256<const I: usize>(sub_block: *const u8, half: usize) -> [__m256i; 2] {
        // SAFETY: the caller vouches for the CPU and for all 320 bytes; I < 4, half < 2.
        unsafe {
            let [low, high] = U4::pair256::<I>(sub_block, half);
            let plane = _mm256_loadu_si256(sub_block.add(NIBBLE_BYTES + 32 * half).cast());
            let (even, odd) = match I {
                0 => (_mm256_slli_epi16::<4>(plane), _mm256_slli_epi16::<3>(plane)),
                1 => (_mm256_slli_epi16::<2>(plane), _mm256_slli_epi16::<1>(plane)),
                2 => (plane, _mm256_srli_epi16::<1>(plane)),
                _ => (_mm256_srli_epi16::<2>(plane), _mm256_srli_epi16::<3>(plane)),
            };
            let mask = _mm256_set1_epi8(16);
            [
                _mm256_or_si256(low, _mm256_and_si256(even, mask)),
                _mm256_or_si256(high, _mm256_and_si256(odd, mask)),
            ]
        }
    }
}
