//! Six bits per quant: the nibbles of [`U4`], then two 64-byte planes of two bits;
//! plane `i / 4` holds the upper bits of quad `i` at bit `2·(i mod 4)` of byte (row, k mod 4).

use super::four_bit::{NIBBLE_BYTES, U4, get_nibble, put_nibbles};
use super::{BLOCK, QUAD, QuantLayout, lane_byte};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// Unsigned 6-bit quants.
pub(crate) struct U6;

/// Byte and bit of the upper two bits of element `k` of `row`.
fn plane_place(row: usize, k: usize) -> (usize, usize) {
    let quad = k / QUAD;
    (
        NIBBLE_BYTES + 64 * (quad / 4) + lane_byte(row, k),
        2 * (quad % 4),
    )
}

impl QuantLayout for U6 {
    const BITS: u32 = 6;
    const SUB_BLOCK_BYTES: usize = NIBBLE_BYTES + 128;
    const IS_COMMON: bool = true;

    fn put(sub_block: &mut [u8], row: usize, quants: &[u8; BLOCK]) {
        put_nibbles(sub_block, row, quants);
        for (k, &quant) in quants.iter().enumerate() {
            let (byte, bit) = plane_place(row, k);
            sub_block[byte] |= (quant >> 4 & 3) << bit;
        }
    }

    fn get(sub_block: &[u8], row: usize) -> [u8; BLOCK] {
        std::array::from_fn(|k| {
            let (byte, bit) = plane_place(row, k);
            get_nibble(sub_block, row, k) | (sub_block[byte] >> bit & 3) << 4
        })
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn pair512<const I: usize>(sub_block: *const u8) -> [__m512i; 2] {
        // SAFETY: the caller vouches for the CPU and for all 384 bytes; I < 4.
        unsafe {
            let [low, high] = U4::pair512::<I>(sub_block);
            let plane = _mm512_loadu_si512(sub_block.add(NIBBLE_BYTES + 64 * (I / 2)).cast());
            let (even, odd) = match I % 2 {
                0 => (_mm512_slli_epi16::<4>(plane), _mm512_slli_epi16::<2>(plane)),
                _ => (plane, _mm512_srli_epi16::<2>(plane)),
            };
            let mask = _mm512_set1_epi8(0x30);
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
        // SAFETY: the caller vouches for the CPU and for all 384 bytes; I < 4, half < 2.
        unsafe {
            let [low, high] = U4::pair256::<I>(sub_block, half);
            let at = NIBBLE_BYTES + 64 * (I / 2) + 32 * half;
            let plane = _mm256_loadu_si256(sub_block.add(at).cast());
            let (even, odd) = match I % 2 {
                0 => (_mm256_slli_epi16::<4>(plane), _mm256_slli_epi16::<2>(plane)),
                _ => (plane, _mm256_srli_epi16::<2>(plane)),
            };
            let mask = _mm256_set1_epi8(0x30);
            [
                _mm256_or_si256(low, _mm256_and_si256(even, mask)),
                _mm256_or_si256(high, _mm256_and_si256(odd, mask)),
            ]
        }
    }
}
