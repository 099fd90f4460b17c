//! How integers lie in memory for the matmul kernels. Rows go in tiles, so that one pointer walks all
//! tokens of a tile: up to four tokens interleaved by quads of four elements for vector kernels, or
//! the rows of AMX tiles, of BF16 for 16 tokens or of bytes for eight.
//!
//! A quad of one token is one or more 32-bit words, as the instruction set multiplies it.

use super::{ActivationProfile, Operands};
use crate::isa::{Isa, IsaKind};
use std::ops::Range;

/// Tokens of a full tile of quads; the last tile of a batch may be narrower.
pub(crate) const TILE_TOKENS: usize = 4;
/// Rows of an AMX tile; tokens of a tile of BF16 rows, the last one padded.
pub(crate) const TILE_ROWS: usize = 16;
/// 32-bit words of an AMX tile row: 32 elements as BF16.
pub(super) const TILE_ROW_WORDS: usize = 16;
/// Tokens of a tile of byte rows, the last one padded: with a row for `hi` and one for `lo` each, they
/// fill an AMX tile.
pub(crate) const BYTE_TILE_TOKENS: usize = 8;
/// 32-bit words of a row of 32 bytes.
pub(super) const BYTE_ROW_WORDS: usize = 8;

/// Sums are kept per 16 elements, the narrowest sub-block of any format.
pub(super) const SUM_ELEMENTS: usize = 16;

/// Rows from which AMX beats the dot products of AVX-512: tiles of byte rows cost as much for one token
/// as for eight.
const MIN_BYTE_ROW_TOKENS: usize = 5;
/// Rows from which tiles of BF16, whose sums need no conversion, win back what unpacking weights to them, and a
/// last tile that is hardly filled, costs.
const MIN_TILE_ROW_TOKENS: usize = 41;

/// What the words of a quad are, and where they lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WordLayout {
    /// 16-bit integers for byte dot products: the four `hi`, then the four `lo` of
    /// `a = 256·hi + lo`. `[quad][token][word]`, as are the next two.
    SplitBytes,
    /// 8-bit integers for byte dot products: one word.
    Bytes,
    /// Integers of any width as 16-bit pairs: elements 0 and 2, then 1 and 3.
    EvenOddPairs,
    /// 16-bit integers for AMX: per 32-block a tile of `256·hi` and a tile of `lo`, both exact in
    /// BF16. `[32-block][part][row][element]`, the elements of a quad in the order 0, 2, 1, 3.
    SplitTileRows,
    /// 8-bit integers for AMX: one tile per 32-block.
    TileRows,
    /// 16-bit integers for AMX with few tokens: per 32-block one tile, the `hi` of eight tokens, then
    /// their `lo`. `[32-block][part][row][element]`.
    SplitByteRows,
    /// 8-bit integers for AMX with few tokens: one tile of eight rows per 32-block.
    ByteRows,
}

impl WordLayout {
    /// The layout that the kernels of `isa` read for a batch of `num_tokens`.
    pub(super) fn of(
        isa: Isa,
        profile: ActivationProfile,
        operands: Operands,
        num_tokens: usize,
    ) -> Self {
        let (split, whole) = match isa.0 {
            IsaKind::Scalar | IsaKind::Avx2 => (Self::EvenOddPairs, Self::EvenOddPairs),
            IsaKind::Amx if num_tokens >= MIN_TILE_ROW_TOKENS && operands == Operands::Floats => {
                (Self::SplitTileRows, Self::TileRows)
            }
            IsaKind::Amx if num_tokens >= MIN_BYTE_ROW_TOKENS => {
                (Self::SplitByteRows, Self::ByteRows)
            }
            IsaKind::Avx512 | IsaKind::Amx => (Self::SplitBytes, Self::Bytes),
        };
        match profile {
            ActivationProfile::A16 => split,
            ActivationProfile::A8 => whole,
        }
    }

    /// 32-bit words of one quad.
    pub(super) fn quad_words(self) -> usize {
        match self {
            Self::SplitBytes | Self::EvenOddPairs | Self::TileRows | Self::SplitByteRows => 2,
            Self::Bytes | Self::ByteRows => 1,
            Self::SplitTileRows => 4,
        }
    }

    /// Whether the words are rows of AMX tiles of BF16.
    pub(super) fn in_tile_rows(self) -> bool {
        matches!(self, Self::SplitTileRows | Self::TileRows)
    }

    /// Whether the words are rows of AMX tiles of bytes.
    pub(super) fn in_byte_rows(self) -> bool {
        matches!(self, Self::SplitByteRows | Self::ByteRows)
    }

    /// Tokens of a full tile.
    pub(super) fn tile_tokens(self) -> usize {
        match self {
            Self::SplitTileRows | Self::TileRows => TILE_ROWS,
            Self::SplitByteRows | Self::ByteRows => BYTE_TILE_TOKENS,
            Self::SplitBytes | Self::Bytes | Self::EvenOddPairs => TILE_TOKENS,
        }
    }

    /// The rows of a batch that `tile` holds.
    pub(super) fn tokens_of(self, tile: usize, num_tokens: usize) -> Range<usize> {
        let start = tile * self.tile_tokens();
        start..(start + self.tile_tokens()).min(num_tokens)
    }

    /// Places of `tile`: its tokens, and the padding of tile rows.
    pub(super) fn width_of(self, tile: usize, num_tokens: usize) -> usize {
        if self.in_tile_rows() || self.in_byte_rows() {
            self.tile_tokens()
        } else {
            self.tokens_of(tile, num_tokens).len()
        }
    }

    /// The first word of the token at `place`, from the start of a block of its tile.
    pub(super) fn first_word(self, place: usize) -> usize {
        match self {
            Self::SplitTileRows | Self::TileRows => place * TILE_ROW_WORDS,
            Self::SplitByteRows | Self::ByteRows => place * BYTE_ROW_WORDS,
            Self::SplitBytes | Self::Bytes | Self::EvenOddPairs => place * self.quad_words(),
        }
    }

    /// The words of a quad for vector kernels; a single word stands twice.
    #[inline(always)]
    fn encode(self, quad: [i16; 4]) -> [u32; 2] {
        match self {
            Self::SplitBytes => [
                // a + 128 cannot overflow: |a| ≤ 32,512.
                u32::from_le_bytes(quad.map(|a| ((a + 128) >> 8) as u8)),
                u32::from_le_bytes(quad.map(|a| a as u8)),
            ],
            Self::Bytes => [u32::from_le_bytes(quad.map(|a| a as u8)); 2],
            Self::EvenOddPairs => {
                let pair = |low: i16, high: i16| {
                    u32::from(low.cast_unsigned()) | u32::from(high.cast_unsigned()) << 16
                };
                [pair(quad[0], quad[2]), pair(quad[1], quad[3])]
            }
            Self::SplitTileRows | Self::TileRows | Self::SplitByteRows | Self::ByteRows => {
                unreachable!("written by the AVX-512 path")
            }
        }
    }

    /// The integers of a quad.
    fn decode(self, words: &[u32]) -> [i32; 4] {
        match self {
            Self::SplitBytes | Self::SplitByteRows => {
                let (hi, lo) = (words[0].to_le_bytes(), words[1].to_le_bytes());
                std::array::from_fn(|c| {
                    256 * i32::from(hi[c].cast_signed()) + i32::from(lo[c].cast_signed())
                })
            }
            Self::Bytes | Self::ByteRows => {
                words[0].to_le_bytes().map(|b| i32::from(b.cast_signed()))
            }
            Self::EvenOddPairs => {
                let low = |word: u32| i32::from(word as i16);
                let high = |word: u32| i32::from((word >> 16) as i16);
                [low(words[0]), low(words[1]), high(words[0]), high(words[1])]
            }
            Self::SplitTileRows | Self::TileRows => {
                let low = |word: u32| f32::from_bits(word << 16) as i32;
                let high = |word: u32| f32::from_bits(word & 0xFFFF_0000) as i32;
                [low(words[0]), low(words[1]), high(words[0]), high(words[1])]
            }
        }
    }

    /// Reads the quads of the token at `place` of a tile `width` tokens wide.
    pub(super) fn gather(self, words: &[u32], place: usize, width: usize, integers: &mut [i32]) {
        let words = &words[self.first_word(place)..];
        let count = self.quad_words();
        if self.in_byte_rows() {
            let part_words = BYTE_TILE_TOKENS * BYTE_ROW_WORDS;
            for (index, quad) in integers.chunks_exact_mut(4).enumerate() {
                let (block, word) = (index / BYTE_ROW_WORDS, index % BYTE_ROW_WORDS);
                let mut parts = [0; 2];
                for (part, encoded) in parts.iter_mut().take(count).enumerate() {
                    *encoded = words[(block * count + part) * part_words + word];
                }
                quad.copy_from_slice(&self.decode(&parts));
            }
            return;
        }
        if !self.in_tile_rows() {
            for (words, quad) in words
                .chunks(width * count)
                .zip(integers.chunks_exact_mut(4))
            {
                quad.copy_from_slice(&self.decode(&words[..count]));
            }
            return;
        }
        let tile_words = TILE_ROWS * TILE_ROW_WORDS;
        let parts = count / 2;
        for (block, integers) in integers.chunks_exact_mut(32).enumerate() {
            integers.fill(0);
            for part in 0..parts {
                let row = &words[(block * parts + part) * tile_words..][..TILE_ROW_WORDS];
                for (words, quad) in row.chunks_exact(2).zip(integers.chunks_exact_mut(4)) {
                    for (sum, a) in quad.iter_mut().zip(self.decode(words)) {
                        *sum += a;
                    }
                }
            }
        }
    }
}

/// Where one block of one token goes in its tile, `width` tokens wide: both slices start at the
/// block's first entry for this token.
pub(super) struct Place<'a> {
    pub layout: WordLayout,
    pub width: usize,
    /// As the layout says.
    pub words: &'a mut [u32],
    /// `[16 elements][token of tile]`.
    pub sums: &'a mut [i32],
}

impl Place<'_> {
    /// Writes the block's words and sums for vector kernels, by definition.
    pub(super) fn put(self, integers: &[i16]) {
        let count = self.layout.quad_words();
        let (quads, _) = integers.as_chunks::<4>();
        for (words, &quad) in self.words.chunks_mut(self.width * count).zip(quads) {
            words[..count].copy_from_slice(&self.layout.encode(quad)[..count]);
        }
        let (sixteens, _) = integers.as_chunks::<SUM_ELEMENTS>();
        for (sum, a) in self.sums.iter_mut().step_by(self.width).zip(sixteens) {
            *sum = a.iter().map(|&a| i32::from(a)).sum();
        }
    }
}
