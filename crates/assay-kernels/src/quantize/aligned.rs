//! Words that start on a cache line: a tile row that lay across two lines would be loaded twice.

const WORDS_PER_LINE: usize = 16;

#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
struct Line([u32; WORDS_PER_LINE]);

/// A growing buffer of words.
#[derive(Debug, Default)]
pub(super) struct AlignedWords {
    lines: Vec<Line>,
    len: usize,
}

impl AlignedWords {
    /// Makes it `len` words long; what was there stays.
    pub(super) fn resize(&mut self, len: usize) {
        self.lines
            .resize(len.div_ceil(WORDS_PER_LINE), Line::default());
        self.len = len;
    }

    pub(super) fn words(&self) -> &[u32] {
        // SAFETY: a line is its sixteen words and nothing else, and the lines hold `len` words.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }

    pub(super) fn words_mut(&mut self) -> &mut [u32] {
        // SAFETY: as in `words`; `&mut self` excludes other references.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}
