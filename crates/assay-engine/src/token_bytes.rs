//! What each token spells: a plain table of bytes by id.
//!
//! The engine needs nothing else of a tokenizer. Bytes are the token's own, without context: no
//! leading space is stripped, no replacement character is made up.

use assay_models::TokenId;
use assay_tokenizer::Tokenizer;

/// Raw bytes of every token, by id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenBytes {
    /// All tokens' bytes, one after the other.
    bytes: Vec<u8>,
    /// `[num_tokens]` end of each token in `bytes`.
    ends: Vec<usize>,
}

impl TokenBytes {
    /// The table of `tokens`, which are listed by id.
    pub fn new<T: AsRef<[u8]>>(tokens: impl IntoIterator<Item = T>) -> Self {
        let mut table = Self::default();
        for token in tokens {
            table.bytes.extend_from_slice(token.as_ref());
            table.ends.push(table.bytes.len());
        }
        table
    }

    /// Number of tokens in the table.
    pub fn num_tokens(&self) -> usize {
        self.ends.len()
    }

    /// Bytes of `token_id`; empty for an id past the table (a head may be padded past the vocabulary).
    pub fn get(&self, token_id: TokenId) -> &[u8] {
        let index = token_id as usize;
        let Some(&end) = self.ends.get(index) else {
            return &[];
        };
        let begin = index
            .checked_sub(1)
            .and_then(|previous| self.ends.get(previous).copied())
            .unwrap_or(0);
        &self.bytes[begin..end]
    }
}

impl From<&Tokenizer> for TokenBytes {
    /// The tokenizer's vocabulary. Tokens that are structure rather than text (control, unknown) spell
    /// nothing in a reply.
    fn from(tokenizer: &Tokenizer) -> Self {
        let num_tokens = u32::try_from(tokenizer.vocab_size()).expect("token ids are u32");
        Self::new((0..num_tokens).map(|token_id| {
            if tokenizer.is_special(token_id) {
                return &[][..];
            }
            tokenizer.token_bytes(token_id).unwrap_or_default()
        }))
    }
}

impl<T: AsRef<[u8]>> FromIterator<T> for TokenBytes {
    fn from_iter<I: IntoIterator<Item = T>>(tokens: I) -> Self {
        Self::new(tokens)
    }
}
