//! A fault check for repacking: the same 32-bit hash of a row from its raw blocks, while they are packed, and from
//! its panel, by the loads of the kernels that will read it.
//!
//! Not cryptographic: it notices a wrong permutation and a flipped bit. The eight quads of a 32-block are
//! turned by their place and summed; blocks are chained by an odd multiplier. Lanes of a vector are
//! rows, so that the sixteen hashes of a panel cost little more than reading it.

use super::quants::{BLOCK, PANEL_ROWS, QUAD, QUADS, QuantLayout};
use super::scales::ScaleLayout;
use crate::isa::{Isa, IsaKind};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

const MULTIPLIER: u32 = 0x9E37_79B1;
/// How far the next quad is turned further than the last.
const TURN: i32 = 4;

/// Widest record of any scale layout, in whole words.
pub(super) const MAX_RECORD_BYTES: usize = 36;

/// A source block's scales, then zeros.
pub(super) type Record = [u8; MAX_RECORD_BYTES];

/// A hash of each row of a panel.
pub(super) type RowHashes = [u32; PANEL_ROWS];

fn chain(hash: u32, word: u32) -> u32 {
    hash.wrapping_mul(MULTIPLIER).wrapping_add(word)
}

/// Hash of a row's blocks so far. Quants and scales are hashed apart, since they lie apart in a panel.
#[derive(Clone, Copy, Default)]
pub(super) struct RowHash {
    quants: u32,
    scales: u32,
}

impl RowHash {
    /// Adds the next 32 quants, as they are stored.
    #[inline(always)]
    pub(super) fn add_quants(&mut self, quants: &[u8; BLOCK]) {
        let (quads, _) = quants.as_chunks::<QUAD>();
        let mut sum = 0_u32;
        for (i, &quad) in quads.iter().enumerate() {
            let turned = u32::from_le_bytes(quad).rotate_left(TURN as u32 * i as u32);
            sum = sum.wrapping_add(turned);
        }
        self.quants = chain(self.quants, sum);
    }

    /// Adds the next block's record of scales.
    #[inline(always)]
    pub(super) fn add_scales<S: ScaleLayout>(&mut self, record: &Record) {
        let (words, _) = record.as_chunks::<4>();
        for &word in &words[..S::RECORD_BYTES.div_ceil(4)] {
            self.scales = chain(self.scales, u32::from_le_bytes(word));
        }
    }

    pub(super) fn finish(self) -> u32 {
        self.quants ^ self.scales.rotate_left(16)
    }
}

/// The hashes of a panel's rows so far.
#[derive(Default)]
pub(super) struct PanelHash {
    rows: [RowHash; PANEL_ROWS],
    quants: RowHashes,
}

impl PanelHash {
    /// Adds `count` sub-blocks of every row.
    ///
    /// # Panics
    /// When `sub_blocks` is shorter.
    pub(super) fn add_quants<Q: QuantLayout>(&mut self, isa: Isa, sub_blocks: &[u8], count: usize) {
        let sub_blocks = &sub_blocks[..count * Q::SUB_BLOCK_BYTES];
        match isa.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: an `Isa` of these kinds exists only on a CPU with AVX-512 F and BW; the slice holds
            // `count` sub-blocks.
            IsaKind::Avx512 | IsaKind::Amx => unsafe {
                add_quants_512::<Q>(sub_blocks.as_ptr(), count, &mut self.quants);
            },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: an `Isa` of this kind exists only on a CPU with AVX2; the slice holds `count` sub-blocks.
            IsaKind::Avx2 => unsafe {
                add_quants_256::<Q>(sub_blocks.as_ptr(), count, &mut self.quants);
            },
            _ => {
                for sub_block in sub_blocks.chunks_exact(Q::SUB_BLOCK_BYTES) {
                    for (row, hash) in self.quants.iter_mut().enumerate() {
                        let mut one = RowHash {
                            quants: *hash,
                            scales: 0,
                        };
                        one.add_quants(&Q::get(sub_block, row));
                        *hash = one.quants;
                    }
                }
            }
        }
    }

    /// Adds the records of `num_blocks` source blocks of every row.
    pub(super) fn add_scales<S: ScaleLayout>(&mut self, section: &[u8], num_blocks: usize) {
        let mut record: Record = [0; MAX_RECORD_BYTES];
        for block in 0..num_blocks {
            for (row, hash) in self.rows.iter_mut().enumerate() {
                S::record(section, block, row, &mut record[..S::RECORD_BYTES]);
                hash.add_scales::<S>(&record);
            }
        }
    }

    pub(super) fn finish(self) -> RowHashes {
        std::array::from_fn(|row| {
            let hash = RowHash {
                quants: self.quants[row],
                ..self.rows[row]
            };
            hash.finish()
        })
    }
}

/// # Safety
/// AVX-512 F, BW; `count` sub-blocks lie at `sub_blocks`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn add_quants_512<Q: QuantLayout>(
    sub_blocks: *const u8,
    count: usize,
    hashes: &mut RowHashes,
) {
    // SAFETY: the caller's contract; the hashes are 64 bytes.
    unsafe {
        let multiplier = _mm512_set1_epi32(MULTIPLIER.cast_signed());
        let mut hash = _mm512_loadu_si512(hashes.as_ptr().cast());
        for index in 0..count {
            let sub_block = sub_blocks.add(index * Q::SUB_BLOCK_BYTES);
            let pairs = [
                Q::pair512::<0>(sub_block),
                Q::pair512::<1>(sub_block),
                Q::pair512::<2>(sub_block),
                Q::pair512::<3>(sub_block),
            ];
            let mut sum = _mm512_mullo_epi32(hash, multiplier);
            for i in 0..QUADS {
                let turn = _mm512_set1_epi32(TURN * i as i32);
                sum = _mm512_add_epi32(sum, _mm512_rolv_epi32(pairs[i / 2][i % 2], turn));
            }
            hash = sum;
        }
        _mm512_storeu_si512(hashes.as_mut_ptr().cast(), hash);
    }
}

/// # Safety
/// AVX2; `count` sub-blocks lie at `sub_blocks`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn add_quants_256<Q: QuantLayout>(
    sub_blocks: *const u8,
    count: usize,
    hashes: &mut RowHashes,
) {
    // SAFETY: the caller's contract; each half of the hashes is 32 bytes.
    unsafe {
        let multiplier = _mm256_set1_epi32(MULTIPLIER.cast_signed());
        for half in 0..PANEL_ROWS / 8 {
            let at = hashes.as_mut_ptr().add(8 * half).cast::<__m256i>();
            let mut hash = _mm256_loadu_si256(at);
            for index in 0..count {
                let sub_block = sub_blocks.add(index * Q::SUB_BLOCK_BYTES);
                let pairs = [
                    Q::pair256::<0>(sub_block, half),
                    Q::pair256::<1>(sub_block, half),
                    Q::pair256::<2>(sub_block, half),
                    Q::pair256::<3>(sub_block, half),
                ];
                let mut sum = _mm256_mullo_epi32(hash, multiplier);
                for i in 0..QUADS {
                    let quad = pairs[i / 2][i % 2];
                    let up = _mm256_sllv_epi32(quad, _mm256_set1_epi32(TURN * i as i32));
                    let down = _mm256_srlv_epi32(quad, _mm256_set1_epi32(32 - TURN * i as i32));
                    sum = _mm256_add_epi32(sum, _mm256_or_si256(up, down));
                }
                hash = sum;
            }
            _mm256_storeu_si256(at, hash);
        }
    }
}

// A turn by 32 or more would be another.
const _: () = assert!(TURN as usize * (QUADS - 1) < 32);
