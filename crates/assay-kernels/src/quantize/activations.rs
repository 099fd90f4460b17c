//! A batch of quantised rows, in the layout of one instruction set.

use super::tile::{Place, QuadWords, SUM_ELEMENTS, TILE_TOKENS};
use super::{ActivationProfile, reference};
use crate::Compute;
use crate::disjoint::DisjointSlice;
use crate::isa::{Isa, IsaKind};
use std::ops::Range;

const BLOCK: usize = 32;
const WORDS_QUAD: usize = 4;
/// Elements of one task: fewer are done sooner than another thread is woken.
const TASK_ELEMENTS: usize = 1 << 14;

/// Quantised activations `[num_tokens, k]`: integers, block scales and sub-block sums.
///
/// A value is a reusable buffer: [`QuantizedActivations::quantize`] overwrites it and allocates only
/// when it must grow.
#[derive(Debug)]
pub struct QuantizedActivations {
    isa: Isa,
    profile: ActivationProfile,
    num_tokens: usize,
    k: usize,
    /// `[tile][quad][token of tile][word]`.
    words: Vec<u32>,
    /// `[tile][scale block][token of tile]`.
    scales: Vec<f32>,
    /// `[tile][16 elements][token of tile]`.
    sums: Vec<i32>,
}

impl Default for QuantizedActivations {
    fn default() -> Self {
        Self {
            isa: Isa::SCALAR,
            profile: ActivationProfile::A16,
            num_tokens: 0,
            k: 0,
            words: Vec::new(),
            scales: Vec::new(),
            sums: Vec::new(),
        }
    }
}

impl QuantizedActivations {
    /// Quantises `x`, `[num_tokens, k]` row-major, replacing what was here.
    ///
    /// # Panics
    /// When `k` is zero or not a multiple of 32, or `x` is not whole rows.
    pub fn quantize(&mut self, cx: &Compute, x: &[f32], k: usize, profile: ActivationProfile) {
        assert!(
            k > 0 && k.is_multiple_of(BLOCK),
            "K = {k} must be a multiple of 32"
        );
        assert!(
            x.len().is_multiple_of(k),
            "{} values are not rows of {k}",
            x.len()
        );
        self.isa = cx.isa;
        self.profile = profile;
        self.num_tokens = x.len() / k;
        self.k = k;
        let (words, scales, sums) = (self.row_words(), self.row_scales(), self.row_sums());
        // Every element is overwritten below, so what a longer batch left behind does not matter.
        self.words.resize(self.num_tokens * words, 0);
        self.scales.resize(self.num_tokens * scales, 0.0);
        self.sums.resize(self.num_tokens * sums, 0);

        let (isa, quad) = (self.isa, self.quad_words());
        let (num_tokens, num_tiles) = (self.num_tokens, self.num_tiles());
        let all_words = DisjointSlice::new(&mut self.words);
        let all_scales = DisjointSlice::new(&mut self.scales);
        let all_sums = DisjointSlice::new(&mut self.sums);
        let quantize_tile = |tile: usize| {
            let tokens = tokens_of(tile, num_tokens);
            let width = tokens.len();
            // SAFETY: tiles are disjoint ranges of tokens and each is quantised once.
            let (words, scales, sums) = unsafe {
                (
                    all_words.part(tokens.start * words, width * words),
                    all_scales.part(tokens.start * scales, width * scales),
                    all_sums.part(tokens.start * sums, width * sums),
                )
            };
            for (place, token) in tokens.enumerate() {
                let row = Row {
                    place,
                    width,
                    quad,
                    profile,
                };
                row.quantize(isa, &x[token * k..(token + 1) * k], words, scales, sums);
            }
        };
        let tiles_per_task = TASK_ELEMENTS.div_ceil(TILE_TOKENS * k);
        cx.pool.run(num_tiles.div_ceil(tiles_per_task), &|task| {
            let start = task * tiles_per_task;
            (start..num_tiles.min(start + tiles_per_task)).for_each(quantize_tile);
        });
    }

    /// Rows.
    pub fn num_tokens(&self) -> usize {
        self.num_tokens
    }

    /// Elements of a row.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Precision of the integers.
    pub fn profile(&self) -> ActivationProfile {
        self.profile
    }

    /// Integers of row `token` into `integers` (`[k]`).
    ///
    /// # Panics
    /// When there is no such row, or `integers` is not `k` long.
    pub fn read_row(&self, token: usize, integers: &mut [i32]) {
        assert!(
            token < self.num_tokens,
            "row {token} of {}",
            self.num_tokens
        );
        assert_eq!(integers.len(), self.k, "length of a row");
        let (tile, place) = (token / TILE_TOKENS, token % TILE_TOKENS);
        let quad = self.quad_words();
        let words = &self.tile_words(tile)[place * quad.count()..];
        quad.gather(words, self.tile_width(tile), integers);
    }

    /// Scale `dA` of the block that holds 32-block `block` of row `token`.
    ///
    /// # Panics
    /// When there is no such row or block.
    pub fn scale(&self, token: usize, block: usize) -> f32 {
        let (tile, place) = (token / TILE_TOKENS, token % TILE_TOKENS);
        let index = block * BLOCK / self.profile.block_elements();
        self.tile_scales(tile)[index * self.tile_width(tile) + place]
    }

    pub(crate) fn isa(&self) -> Isa {
        self.isa
    }

    pub(crate) fn num_tiles(&self) -> usize {
        self.num_tokens.div_ceil(TILE_TOKENS)
    }

    /// Tokens of a tile, as row indices.
    pub(crate) fn tile_tokens(&self, tile: usize) -> Range<usize> {
        tokens_of(tile, self.num_tokens)
    }

    pub(crate) fn tile_width(&self, tile: usize) -> usize {
        self.tile_tokens(tile).len()
    }

    /// `[quad][token of tile][word]`.
    pub(crate) fn tile_words(&self, tile: usize) -> &[u32] {
        part(&self.words, self.row_words(), self.tile_tokens(tile))
    }

    /// `[scale block][token of tile]`.
    pub(crate) fn tile_scales(&self, tile: usize) -> &[f32] {
        part(&self.scales, self.row_scales(), self.tile_tokens(tile))
    }

    /// `[16 elements][token of tile]`.
    pub(crate) fn tile_sums(&self, tile: usize) -> &[i32] {
        part(&self.sums, self.row_sums(), self.tile_tokens(tile))
    }

    /// Sums of every tile.
    pub(crate) fn sums(&self) -> &[i32] {
        &self.sums
    }

    fn quad_words(&self) -> QuadWords {
        match (self.isa.0, self.profile) {
            (IsaKind::Avx512, ActivationProfile::A16) => QuadWords::SplitBytes,
            (IsaKind::Avx512, ActivationProfile::A8) => QuadWords::Bytes,
            (IsaKind::Scalar | IsaKind::Avx2, _) => QuadWords::EvenOddPairs,
        }
    }

    fn row_words(&self) -> usize {
        self.k / WORDS_QUAD * self.quad_words().count()
    }

    fn row_scales(&self) -> usize {
        self.k.div_ceil(self.profile.block_elements())
    }

    fn row_sums(&self) -> usize {
        self.k / SUM_ELEMENTS
    }
}

fn tokens_of(tile: usize, num_tokens: usize) -> Range<usize> {
    let start = tile * TILE_TOKENS;
    start..(start + TILE_TOKENS).min(num_tokens)
}

/// The share of `tokens` in a per-row array; tiles keep rows of equal length, so shares are ranges.
fn part<T>(all: &[T], per_row: usize, tokens: Range<usize>) -> &[T] {
    &all[tokens.start * per_row..tokens.end * per_row]
}

/// Where one row goes in its tile.
struct Row {
    place: usize,
    width: usize,
    quad: QuadWords,
    profile: ActivationProfile,
}

impl Row {
    fn quantize(
        &self,
        isa: Isa,
        x: &[f32],
        words: &mut [u32],
        scales: &mut [f32],
        sums: &mut [i32],
    ) {
        let block_elements = self.profile.block_elements();
        let limit = self.profile.limit();
        let words_per_block = block_elements / WORDS_QUAD * self.quad.count() * self.width;
        let sums_per_block = block_elements / SUM_ELEMENTS * self.width;
        for (index, x) in x.chunks(block_elements).enumerate() {
            let place = Place {
                quad: self.quad,
                width: self.width,
                words: &mut words[index * words_per_block + self.place * self.quad.count()..],
                sums: &mut sums[index * sums_per_block + self.place..],
            };
            scales[index * self.width + self.place] = match isa.0 {
                IsaKind::Scalar => reference::quantize_block(x, limit, place),
                #[cfg(target_arch = "x86_64")]
                // SAFETY: an `Isa` of this kind exists only on a CPU that has AVX2.
                IsaKind::Avx2 => unsafe { super::avx2::quantize_block(x, limit, place) },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: an `Isa` of this kind exists only on a CPU that has AVX2 and AVX-512 F,
                // BW and VL.
                IsaKind::Avx512 => unsafe { super::avx512::quantize_block(x, limit, place) },
                #[cfg(not(target_arch = "x86_64"))]
                IsaKind::Avx2 | IsaKind::Avx512 => reference::quantize_block(x, limit, place),
            };
        }
    }
}
