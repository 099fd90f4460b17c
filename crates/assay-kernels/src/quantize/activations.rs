//! A batch of quantised rows, in the layout of one instruction set.

use super::aligned::AlignedWords;
use super::tile::{Place, SUM_ELEMENTS, WordLayout};
use super::{ActivationProfile, Operands, reference};
use crate::Compute;
use crate::disjoint::DisjointSlice;
use crate::isa::{Isa, IsaKind};
use std::ops::Range;

const BLOCK: usize = 32;
const WORDS_QUAD: usize = 4;
/// Tiles of byte rows from which their weights are expanded once for all.
const MIN_EXPANDED_TILES: usize = 3;
/// Elements of one task: fewer are done sooner than another thread is woken.
const TASK_ELEMENTS: usize = 1 << 13;

/// Quantised activations `[num_tokens, k]`: integers, block scales and sub-block sums.
///
/// A value is a reusable buffer: [`QuantizedActivations::quantize`] overwrites it and allocates only
/// when it must grow.
#[derive(Debug)]
pub struct QuantizedActivations {
    isa: Isa,
    profile: ActivationProfile,
    layout: WordLayout,
    num_tokens: usize,
    k: usize,
    /// Per tile, as the layout says.
    words: AlignedWords,
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
            layout: WordLayout::EvenOddPairs,
            num_tokens: 0,
            k: 0,
            words: AlignedWords::default(),
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
        self.quantize_as(Operands::Floats, cx, x, k, profile);
    }

    /// [`QuantizedActivations::quantize`], laid out for these operands.
    ///
    /// # Panics
    /// As there.
    pub(crate) fn quantize_as(
        &mut self,
        operands: Operands,
        cx: &Compute,
        x: &[f32],
        k: usize,
        profile: ActivationProfile,
    ) {
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
        self.layout = WordLayout::of(self.isa, profile, operands, self.num_tokens);
        let (words, scales, sums) = (self.row_words(), self.row_scales(), self.row_sums());
        // Every element of a token is overwritten below, so what a longer batch left behind does not
        // matter; nor do the padded rows of a last tile, whose outputs nobody stores.
        let places = self.num_places();
        self.words.resize(places * words);
        self.scales.resize(places * scales, 0.0);
        self.sums.resize(places * sums, 0);

        let (isa, layout) = (self.isa, self.layout);
        let (num_tokens, num_tiles) = (self.num_tokens, self.num_tiles());
        let all_words = DisjointSlice::new(self.words.words_mut());
        let all_scales = DisjointSlice::new(&mut self.scales);
        let all_sums = DisjointSlice::new(&mut self.sums);
        let quantize_tile = |tile: usize| {
            let tokens = layout.tokens_of(tile, num_tokens);
            let width = layout.width_of(tile, num_tokens);
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
                    layout,
                    profile,
                };
                row.quantize(isa, &x[token * k..(token + 1) * k], words, scales, sums);
            }
        };
        let tiles_per_task = TASK_ELEMENTS.div_ceil(layout.tile_tokens() * k);
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
        let (tile, place) = self.place_of(token);
        self.layout.gather(
            self.tile_words(tile),
            place,
            self.tile_width(tile),
            integers,
        );
    }

    /// Scale `dA` of the block that holds 32-block `block` of row `token`.
    ///
    /// # Panics
    /// When there is no such row or block.
    pub fn scale(&self, token: usize, block: usize) -> f32 {
        let (tile, place) = self.place_of(token);
        let index = block * BLOCK / self.profile.block_elements();
        self.tile_scales(tile)[index * self.tile_width(tile) + place]
    }

    pub(crate) fn isa(&self) -> Isa {
        self.isa
    }

    pub(crate) fn num_tiles(&self) -> usize {
        self.num_tokens.div_ceil(self.layout.tile_tokens())
    }

    /// Whether the words are rows of AMX tiles of BF16.
    pub(crate) fn in_tile_rows(&self) -> bool {
        self.layout.in_tile_rows()
    }

    /// Whether the words are rows of AMX tiles of bytes.
    pub(crate) fn in_byte_rows(&self) -> bool {
        self.layout.in_byte_rows()
    }

    /// Whether they are, and so many that it pays to expand weights once for all tiles: expanding costs as much as
    /// a tile, and saves a third of one of 16-bit integers, a sixth of one of 8-bit ones, which never are so many.
    pub(crate) fn in_many_byte_rows(&self) -> bool {
        self.in_byte_rows()
            && self.profile == ActivationProfile::A16
            && self.num_tiles() >= MIN_EXPANDED_TILES
    }

    /// Tokens of a full tile.
    pub(crate) fn full_tile_tokens(&self) -> usize {
        self.layout.tile_tokens()
    }

    /// Tokens of a tile, as row indices.
    pub(crate) fn tile_tokens(&self, tile: usize) -> Range<usize> {
        self.layout.tokens_of(tile, self.num_tokens)
    }

    /// Places of a tile: its tokens, and padding where tiles have one size.
    pub(crate) fn tile_width(&self, tile: usize) -> usize {
        self.layout.width_of(tile, self.num_tokens)
    }

    /// `[quad][token of tile][word]`, or the tile rows of each 32-block; aligned to 64 bytes.
    pub(crate) fn tile_words(&self, tile: usize) -> &[u32] {
        self.part(self.words.words(), self.row_words(), tile)
    }

    /// `[scale block][token of tile]`.
    pub(crate) fn tile_scales(&self, tile: usize) -> &[f32] {
        self.part(&self.scales, self.row_scales(), tile)
    }

    /// `[16 elements][token of tile]`.
    pub(crate) fn tile_sums(&self, tile: usize) -> &[i32] {
        self.part(&self.sums, self.row_sums(), tile)
    }

    /// Sums of every tile.
    pub(crate) fn sums(&self) -> &[i32] {
        &self.sums
    }

    /// Tile of a token and its place in it.
    fn place_of(&self, token: usize) -> (usize, usize) {
        let tile_tokens = self.layout.tile_tokens();
        (token / tile_tokens, token % tile_tokens)
    }

    /// Tokens and the padding of a last tile.
    fn num_places(&self) -> usize {
        match self.num_tiles() {
            0 => 0,
            tiles => (tiles - 1) * self.layout.tile_tokens() + self.tile_width(tiles - 1),
        }
    }

    /// The share of `tile` in an array of `per_row` elements a place; only the last tile may be
    /// narrower, so shares are ranges.
    fn part<'a, T>(&self, all: &'a [T], per_row: usize, tile: usize) -> &'a [T] {
        let start = tile * self.layout.tile_tokens() * per_row;
        &all[start..start + self.tile_width(tile) * per_row]
    }

    fn row_words(&self) -> usize {
        self.k / WORDS_QUAD * self.layout.quad_words()
    }

    fn row_scales(&self) -> usize {
        self.k.div_ceil(self.profile.block_elements())
    }

    fn row_sums(&self) -> usize {
        self.k / SUM_ELEMENTS
    }
}

/// Where one row goes in its tile.
struct Row {
    place: usize,
    width: usize,
    layout: WordLayout,
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
        let words_per_block = block_elements / WORDS_QUAD * self.layout.quad_words() * self.width;
        let sums_per_block = block_elements / SUM_ELEMENTS * self.width;
        for (index, x) in x.chunks(block_elements).enumerate() {
            let place = Place {
                layout: self.layout,
                width: self.width,
                words: &mut words[index * words_per_block + self.layout.first_word(self.place)..],
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
                IsaKind::Avx512 | IsaKind::Amx => unsafe {
                    super::avx512::quantize_block(x, limit, place)
                },
                #[cfg(not(target_arch = "x86_64"))]
                IsaKind::Avx2 | IsaKind::Avx512 | IsaKind::Amx => {
                    reference::quantize_block(x, limit, place)
                }
            };
        }
    }
}
