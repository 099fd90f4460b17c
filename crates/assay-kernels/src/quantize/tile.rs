//! How integers lie in memory for the matmul kernels: tiles of up to four tokens, interleaved by
//! quads of four elements, so that one pointer walks all tokens of a tile.
//!
//! A quad of one token is one or two 32-bit words, as the instruction set multiplies it.

/// Tokens of a full tile; the last tile of a batch may be narrower.
pub(crate) const TILE_TOKENS: usize = 4;

/// What the words of a quad are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QuadWords {
    /// 16-bit integers for byte dot products: the four `hi`, then the four `lo` of
    /// `a = 256·hi + lo`.
    SplitBytes,
    /// 8-bit integers for byte dot products: one word.
    Bytes,
    /// Integers of any width as 16-bit pairs: elements 0 and 2, then 1 and 3.
    EvenOddPairs,
}

impl QuadWords {
    /// 32-bit words of one quad.
    pub(super) fn count(self) -> usize {
        match self {
            Self::SplitBytes | Self::EvenOddPairs => 2,
            Self::Bytes => 1,
        }
    }

    /// The words of a quad; a single word stands twice.
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
        }
    }

    /// The integers of a quad.
    fn decode(self, words: &[u32]) -> [i32; 4] {
        match self {
            Self::SplitBytes => {
                let (hi, lo) = (words[0].to_le_bytes(), words[1].to_le_bytes());
                std::array::from_fn(|c| {
                    256 * i32::from(hi[c].cast_signed()) + i32::from(lo[c].cast_signed())
                })
            }
            Self::Bytes => words[0].to_le_bytes().map(|b| i32::from(b.cast_signed())),
            Self::EvenOddPairs => {
                let low = |word: u32| i32::from(word as i16);
                let high = |word: u32| i32::from((word >> 16) as i16);
                [low(words[0]), low(words[1]), high(words[0]), high(words[1])]
            }
        }
    }

    /// Writes the quads of a token's block into its tile: `words` starts at the block's first quad
    /// and the token's place in the tile, which is `width` tokens wide.
    #[inline(always)]
    pub(super) fn scatter(self, integers: &[i16], width: usize, words: &mut [u32]) {
        let count = self.count();
        let (quads, _) = integers.as_chunks::<4>();
        for (place, &quad) in words.chunks_mut(width * count).zip(quads) {
            place[..count].copy_from_slice(&self.encode(quad)[..count]);
        }
    }

    /// The reverse of [`QuadWords::scatter`].
    pub(super) fn gather(self, words: &[u32], width: usize, integers: &mut [i32]) {
        let count = self.count();
        for (place, quad) in words
            .chunks(width * count)
            .zip(integers.chunks_exact_mut(4))
        {
            quad.copy_from_slice(&self.decode(&place[..count]));
        }
    }
}
