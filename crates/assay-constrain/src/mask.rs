//! A set of token ids, as bits.

/// Which tokens may come next; ids past the vocabulary never may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenMask {
    /// Bit `id % 32` of word `id / 32`; bits past `vocab_size` are clear.
    words: Vec<u32>,
    vocab_size: usize,
}

impl TokenMask {
    /// A mask of `vocab_size` ids that allows those in `token_ids`; others past it are dropped.
    #[must_use]
    pub fn of(vocab_size: usize, token_ids: impl IntoIterator<Item = u32>) -> Self {
        let none = Self {
            words: vec![0; vocab_size.div_ceil(32)],
            vocab_size,
        };
        none.with(token_ids)
    }

    /// Takes over `words`, which may be longer than `vocab_size` needs.
    pub(crate) fn from_words(words: &[u32], vocab_size: usize) -> Self {
        let mut words = words.to_vec();
        words.resize(vocab_size.div_ceil(32), 0);
        if let Some(last) = words.last_mut()
            && !vocab_size.is_multiple_of(32)
        {
            *last &= (1 << (vocab_size % 32)) - 1;
        }
        Self { words, vocab_size }
    }

    /// The mask with `token_ids` allowed as well; those past it are dropped.
    #[must_use]
    pub fn with(mut self, token_ids: impl IntoIterator<Item = u32>) -> Self {
        for token_id in token_ids {
            let id = token_id as usize;
            if id < self.vocab_size {
                self.words[id / 32] |= 1 << (id % 32);
            }
        }
        self
    }

    /// Whether `token_id` may come next.
    #[must_use]
    pub fn allows(&self, token_id: u32) -> bool {
        let id = token_id as usize;
        self.words
            .get(id / 32)
            .is_some_and(|word| word >> (id % 32) & 1 == 1)
    }

    /// The allowed ids, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(&self.words).flat_map(|(index, &word)| {
            let mut rest: u32 = word;
            std::iter::from_fn(move || {
                if rest == 0 {
                    return None;
                }
                let bit = rest.trailing_zeros();
                rest &= rest - 1;
                Some(index * 32 + bit)
            })
        })
    }

    /// Number of allowed ids.
    #[must_use]
    pub fn num_allowed(&self) -> usize {
        self.words
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum()
    }

    /// Whether no id is allowed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// Number of ids that the mask decides on.
    #[must_use]
    pub fn vocab_size(&self) -> usize {
        self.vocab_size
    }
}
