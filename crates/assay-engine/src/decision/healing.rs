//! Bytes that were taken back from a prompt, and the tokens that can spell them.
//!
//! The model may write the same bytes as other tokens than the labels do. Their mass together is what a label's
//! probability is divided by, so each way to cut the bytes counts.

use assay_models::TokenId;

use crate::token_bytes::TokenBytes;

/// The healed bytes of one question, and the vocabulary's tokens that fit them from each byte on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Healing {
    bytes: Vec<u8>,
    /// `[num_bytes]` by first byte: tokens that end inside the healed bytes, ascending, each with its length.
    inside: Vec<Vec<TokenId>>,
    /// `[num_bytes]` by first byte: tokens that reach the end of the healed bytes or go past it, ascending.
    covering: Vec<Vec<TokenId>>,
    /// Bytes of each token of `inside`, which several places may share.
    lengths: std::collections::BTreeMap<TokenId, usize>,
}

impl Healing {
    /// Looks the whole vocabulary up once; nothing is healed where `bytes` is empty.
    pub(crate) fn new(bytes: &[u8], token_bytes: &TokenBytes) -> Self {
        let mut healing = Self {
            bytes: bytes.to_vec(),
            inside: vec![Vec::new(); bytes.len()],
            covering: vec![Vec::new(); bytes.len()],
            ..Self::default()
        };
        if bytes.is_empty() {
            return healing;
        }
        let num_tokens = u32::try_from(token_bytes.num_tokens()).unwrap_or(u32::MAX);
        for token_id in 0..num_tokens {
            let token = token_bytes.get(token_id);
            for (first, rest) in (0..bytes.len()).map(|first| (first, &bytes[first..])) {
                if token.is_empty() {
                    continue;
                }
                if token.starts_with(rest) {
                    healing.covering[first].push(token_id);
                } else if rest.starts_with(token) {
                    healing.inside[first].push(token_id);
                    healing.lengths.insert(token_id, token.len());
                }
            }
        }
        healing
    }

    /// How many bytes are healed.
    pub(crate) fn num_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Tokens that spell further healed bytes, but not the last one, where `num_spelled` are spelled.
    pub(crate) fn inside(&self, num_spelled: usize) -> &[TokenId] {
        self.inside.get(num_spelled).map_or(&[], Vec::as_slice)
    }

    /// Tokens that spell all the rest of the healed bytes, and perhaps more; none once all are spelled.
    pub(crate) fn covering(&self, num_spelled: usize) -> &[TokenId] {
        self.covering.get(num_spelled).map_or(&[], Vec::as_slice)
    }

    /// Healed bytes that are spelled with `token_id` behind `num_spelled` of them; `None` if it spells something else.
    pub(crate) fn spells(&self, num_spelled: usize, token_id: TokenId) -> Option<usize> {
        let all = self.bytes.len();
        if num_spelled >= all || self.covering(num_spelled).binary_search(&token_id).is_ok() {
            return Some(all);
        }
        self.inside(num_spelled).binary_search(&token_id).ok()?;
        Some(num_spelled + self.lengths.get(&token_id)?)
    }
}
