//! Logits behind prompts of which one token was scored, kept for whoever asks about the same prompt next.
//!
//! Scoring one token takes one row of logits: that of the token before it. The prefix cache spares every token but that
//! one, whose row costs a pass over all weights. So labels scored one by one behind a text would each pay a pass for the
//! very same row; from here they take it, and no pass runs. A row's bits do not depend on when or beside what it was
//! computed, hence a kept one is the one that a pass would give.

use std::sync::Arc;

use assay_models::{Logits, TokenId};
use lru::LruCache;

use crate::prefix_tree::CacheSalt;
use crate::request::Request;

/// Bytes of logits and ids kept; 300 rows of a vocabulary of 49,152.
const KEPT_BYTES: usize = 64 << 20;

/// What a row of logits follows from, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RowKey {
    cache_salt: CacheSalt,
    token_ids: Arc<[TokenId]>,
}

impl RowKey {
    /// The only row that `request` wants; `None` if it wants others as well, or the keys and values behind it.
    pub(crate) fn of(request: &Request) -> Option<Self> {
        let token_ids = request.tokens_to_prefill();
        let wants_only_the_last = request.max_tokens == 0
            && request.num_choices == 1
            && request
                .prompt_logprobs
                .is_some_and(|params| params.first_position as usize == token_ids.len());
        wants_only_the_last.then(|| Self {
            cache_salt: request.cache_salt.clone(),
            token_ids: token_ids.into(),
        })
    }
}

/// Rows by what they follow from; those used longest ago leave when there is no room.
#[derive(Debug)]
pub(crate) struct RowCache {
    rows: LruCache<RowKey, Arc<Logits>>,
    limit_bytes: usize,
    num_bytes: usize,
}

impl RowCache {
    /// An empty cache.
    pub(crate) fn new() -> Self {
        Self::with_limit(KEPT_BYTES)
    }

    /// A cache that keeps nothing.
    pub(crate) fn off() -> Self {
        Self::with_limit(0)
    }

    fn with_limit(limit_bytes: usize) -> Self {
        Self {
            rows: LruCache::unbounded(),
            limit_bytes,
            num_bytes: 0,
        }
    }

    /// The one row of logits kept for `key`, which counts as a use.
    pub(crate) fn get(&mut self, key: &RowKey) -> Option<Arc<Logits>> {
        self.rows.get(key).cloned()
    }

    /// Whether a row of `vocab_size` logits would be kept: it is not yet, and not over the limit by itself.
    pub(crate) fn wants(&self, key: &RowKey, vocab_size: usize) -> bool {
        bytes_of(key, vocab_size) <= self.limit_bytes && !self.rows.contains(key)
    }

    /// Keeps `row`, if it is wanted.
    pub(crate) fn insert(&mut self, key: RowKey, row: &[f32]) {
        if !self.wants(&key, row.len()) {
            return;
        }
        let num_bytes = bytes_of(&key, row.len());
        while self.num_bytes + num_bytes > self.limit_bytes {
            let (key, logits) = self.rows.pop_lru().expect("what is counted is there");
            self.num_bytes -= bytes_of(&key, logits.row(0).len());
        }
        self.num_bytes += num_bytes;
        let logits = Logits::from_rows(row.len(), row.to_vec());
        self.rows.put(key, Arc::new(logits));
    }
}

fn bytes_of(key: &RowKey, vocab_size: usize) -> usize {
    key.token_ids.len() * size_of::<TokenId>() + vocab_size * size_of::<f32>()
}

#[cfg(test)]
mod tests {
    use super::{RowCache, RowKey};

    fn key(first: u32, num_tokens: u32) -> RowKey {
        RowKey {
            cache_salt: None,
            token_ids: (first..first + num_tokens).collect(),
        }
    }

    #[test]
    fn rows_used_longest_ago_leave_and_bytes_are_conserved() {
        // Two rows of 8 logits behind 2 tokens are 80 bytes.
        let mut cache = RowCache::with_limit(100);
        cache.insert(key(1, 2), &[1.0; 8]);
        cache.insert(key(2, 2), &[2.0; 8]);
        let row_of =
            |cache: &mut RowCache, first| cache.get(&key(first, 2)).map(|row| row.row(0)[0]);
        assert_eq!(row_of(&mut cache, 1), Some(1.0));
        cache.insert(key(3, 2), &[3.0; 8]);
        let held = [1, 2, 3].map(|first| row_of(&mut cache, first));
        assert_eq!(held, [Some(1.0), None, Some(3.0)]);
        assert_eq!(cache.num_bytes, 80);
        // One that is known stays as it is; one over the limit drives nobody out.
        cache.insert(key(3, 2), &[3.0; 8]);
        cache.insert(key(9, 100), &[9.0; 8]);
        assert_eq!((cache.num_bytes, cache.rows.len()), (80, 2));
        cache.insert(key(9, 10), &[9.0; 8]);
        assert_eq!((cache.num_bytes, cache.rows.len()), (72, 1));
    }

    #[test]
    fn a_salt_keeps_rows_apart() {
        let mut cache = RowCache::new();
        cache.insert(key(1, 2), &[1.0; 8]);
        let salted = RowKey {
            cache_salt: Some("other".into()),
            ..key(1, 2)
        };
        assert!(cache.get(&salted).is_none());
        let mut off = RowCache::off();
        off.insert(key(1, 2), &[1.0; 8]);
        assert!(off.get(&key(1, 2)).is_none());
    }
}
