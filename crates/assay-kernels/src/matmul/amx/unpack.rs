//! Packed quants as tiles of BF16, and where their zero goes.
//!
//! A tile row is two elements of each of 16 rows. A quad vector gives two of them, elements (0, 2)
//! and (1, 3), which is why activations keep that order too.

use super::product::Product;
use crate::matmul::exact::has_exact_sums_unsigned;
use crate::matmul::quants::{BLOCK, PANEL_ROWS, QUADS, QuantLayout};
use crate::matmul::scales::ScaleLayout;
use std::arch::x86_64::*;

/// BF16 of 16 rows × 32 elements: `[pair of elements][row][element]`; also an activation tile.
pub(super) type BlockTile = [[[u16; 2]; PANEL_ROWS]; BLOCK / 2];

/// What to subtract from stored quants. Formats without offsets have their zero point; with offsets
/// quants are unsigned, and are centred only if that makes their sums exact.
pub(super) fn center<Q: QuantLayout, S: ScaleLayout, P: Product>(zero_point: u8) -> u8 {
    let half = 1 << (Q::BITS - 1);
    if !S::HAS_OFFSET {
        // With 8-bit activations the sums of any byte less any byte are exact.
        assert!(
            !P::WIDE || u32::from(zero_point) == half,
            "quants without offsets are centred"
        );
        return zero_point;
    }
    if !P::WIDE || has_exact_sums_unsigned::<Q, S>() {
        0
    } else {
        half as u8
    }
}

/// BF16 of the stored quants of one layout.
pub(super) struct Bf16Quants {
    /// Of every quant of up to six bits, less the centre.
    table: [u16; 64],
    center: u8,
}

impl Bf16Quants {
    /// Of quants of `bits` bits, less `center`.
    pub(super) fn new(bits: u32, center: u8) -> Self {
        let bf16 = |quant: usize| {
            let value = (quant % (1 << bits)) as f32 - f32::from(center);
            (value.to_bits() >> 16) as u16
        };
        Self {
            table: std::array::from_fn(bf16),
            center,
        }
    }
}

/// Writes sub-blocks as tiles.
///
/// # Safety
/// AVX-512 F, BW; there are `count` sub-blocks of layout `Q`, as many tiles can be written; `quants` is of
/// as many bits.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) unsafe fn unpack_tiles<Q: QuantLayout>(
    quants: &Bf16Quants,
    sub_blocks: *const u8,
    count: usize,
    tiles: *mut BlockTile,
) {
    for index in 0..count {
        // SAFETY: the caller vouches for the CPU, the sub-blocks and the tiles, which are 16 vectors each.
        unsafe {
            let sub_block = sub_blocks.add(index * Q::SUB_BLOCK_BYTES);
            let rows = tiles.add(index).cast::<__m512i>();
            let quads = [
                Q::pair512::<0>(sub_block),
                Q::pair512::<1>(sub_block),
                Q::pair512::<2>(sub_block),
                Q::pair512::<3>(sub_block),
            ];
            for i in 0..QUADS {
                let quad = quads[i / 2][i % 2];
                _mm512_storeu_si512(rows.add(2 * i), halves::<Q>(quants, quad));
                let odd = _mm512_srli_epi16::<8>(quad);
                _mm512_storeu_si512(rows.add(2 * i + 1), halves::<Q>(quants, odd));
            }
        }
    }
}

/// The lower byte of each 16 bits, less the centre, as BF16.
///
/// # Safety
/// AVX-512 F, BW.
#[inline(always)]
unsafe fn halves<Q: QuantLayout>(bf16: &Bf16Quants, quants: __m512i) -> __m512i {
    // SAFETY: the caller vouches for the CPU; the table is 128 bytes.
    unsafe {
        let table = bf16.table.as_ptr();
        let low = _mm512_loadu_si512(table.cast());
        match Q::BITS {
            // Lookups ignore the index bits above those they need.
            ..=5 => _mm512_permutexvar_epi16(quants, low),
            6 => {
                let high = _mm512_loadu_si512(table.add(32).cast());
                _mm512_permutex2var_epi16(low, quants, high)
            }
            _ => {
                let byte = _mm512_set1_epi32(0xFF);
                let center = _mm512_set1_epi32(bf16.center.into());
                let to_f32 = |quants| {
                    let quants = _mm512_sub_epi32(_mm512_and_si512(quants, byte), center);
                    _mm512_castps_si512(_mm512_cvtepi32_ps(quants))
                };
                let first = _mm512_srli_epi32::<16>(to_f32(quants));
                let second = to_f32(_mm512_srli_epi32::<16>(quants));
                _mm512_mask_blend_epi16(0xAAAA_AAAA, first, second)
            }
        }
    }
}
