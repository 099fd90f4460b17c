//! Three bits per quant: the pairs of [`U2`], then one 64-byte plane whose byte (row, k mod 4) holds
//! the third bit of quad `i` as its bit `i`.

use super::two_bit::{PAIR_BYTES, U2};
use super::{BLOCK, QUAD, QuantLayout, lane_byte};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// Unsigned 3-bit quants.
pub(crate) struct U3;

impl QuantLayout for U3 {
    const SUB_BLOCK_BYTES: usize = PAIR_BYTES + 64;

    fn put(sub_block: &mut [u8], row: usize, quants: &[u8; BLOCK]) {
        U2::put(sub_block, row, quants);
        for (k, &quant) in quants.iter().enumerate() {
            sub_block[PAIR_BYTES + lane_byte(row, k)] |= (quant >> 2 & 1) << (k / QUAD);
        }
    }

    fn get(sub_block: &[u8], row: usize) -> [u8; BLOCK] {
        let pairs = U2::get(sub_block, row);
        std::array::from_fn(|k| {
            let plane = sub_block[PAIR_BYTES + lane_byte(row, k)];
            pairs[k] | (plane >> (k / QUAD) & 1) << 2
        })
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn pair512<const I: usize>(sub_block: *const u8) -> [__m512i; 2] {
        // SAFETY: the caller vouches for the CPU and for all 192 bytes; I < 4.
        unsafe {
            let [low, high] = U2::pair512::<I>(sub_block);
            let plane = _mm512_loadu_si512(sub_block.add(PAIR_BYTES).cast());
            // Bits 2·I and 2·I + 1 move to bit 2; what leaks in from the neighbour byte is masked.
            let (even, odd) = match I {
                0 => (_mm512_slli_epi16::<2>(plane), _mm512_slli_epi16::<1>(plane)),
                1 => (plane, _mm512_srli_epi16::<1>(plane)),
                2 => (_mm512_srli_epi16::<2>(plane), _mm512_srli_epi16::<3>(plane)),
                _ => (_mm512_srli_epi16::<4>(plane), _mm512_srli_epi16::<5>(plane)),
            };
            let mask = _mm512_set1_epi8(4);
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
        // SAFETY: the caller vouches for the CPU and for all 192 bytes; I < 4, half < 2.
        unsafe {
            let [low, high] = U2::pair256::<I>(sub_block, half);
            let plane = _mm256_loadu_si256(sub_block.add(PAIR_BYTES + 32 * half).cast());
            let (even, odd) = match I {
                0 => (_mm256_slli_epi16::<2>(plane), _mm256_slli_epi16::<1>(plane)),
                1 => (plane, _mm256_srli_epi16::<1>(plane)),
                2 => (_mm256_srli_epi16::<2>(plane), _mm256_srli_epi16::<3>(plane)),
                _ => (_mm256_srli_epi16::<4>(plane), _mm256_srli_epi16::<5>(plane)),
            };
            let mask = _mm256_set1_epi8(4);
            [
                _mm256_or_si256(low, _mm256_and_si256(even, mask)),
                _mm256_or_si256(high, _mm256_and_si256(odd, mask)),
            ]
        }
    }
}
