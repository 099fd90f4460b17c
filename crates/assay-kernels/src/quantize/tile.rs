//! How integers lie in memory for the matmul kernels: tiles of up to four tokens, interleaved by
//! quads of four elements, so that one pointer walks all tokens of a tile.
//!
//! A quad of one token is one or two 32-bit words, as the instruction set multiplies it.

/// Tokens of a full tile; the last tile of a batch may be narrower.
pub(crate) const TILE_TOKENS: usize = 4;

/// Sums are kept per 16 elements, the narrowest sub-block of any format.
pub(super) const SUM_ELEMENTS: usize = 16;

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

    /// Reads the quads of a token: `words` starts at its place in the first quad of its tile, which
    /// is `width` tokens wide.
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

/// Where one block of one token goes in its tile, `width` tokens wide: both slices start at the
/// block's first entry for this token.
pub(super) struct Place<'a> {
    pub quad: QuadWords,
    pub width: usize,
    /// `[quad][token of tile][word]`.
    pub words: &'a mut [u32],
    /// `[16 elements][token of tile]`.
    pub sums: &'a mut [i32],
}

impl Place<'_> {
    /// Writes the block's words and sums, by definition.
    pub(super) fn put(self, integers: &[i16]) {
        let count = self.quad.count();
        let (quads, _) = integers.as_chunks::<4>();
        for (words, &quad) in self.words.chunks_mut(self.width * count).zip(quads) {
            words[..count].copy_from_slice(&self.quad.encode(quad)[..count]);
        }
        let (sixteens, _) = integers.as_chunks::<SUM_ELEMENTS>();
        for (sum, a) in self.sums.iter_mut().step_by(self.width).zip(sixteens) {
            *sum = a.iter().map(|&a| i32::from(a)).sum();
        }
    }
}
