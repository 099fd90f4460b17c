//! One token sequence on its way through the scheduler: what is computed, what it holds.
//!
//! Knows token ids and KV blocks; nothing of text, scores or clients.

use assay_models::{BlockId, TokenId};

use crate::prefix_tree::CacheSalt;

/// Name of a sequence. The order of ids is the order of arrival: requests as they were submitted, the
/// choices of a request by index. A decision's trunk has index 0, its branches those of their segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeqId {
    /// Running number of the request in this engine.
    pub arrival: u64,
    /// Which choice of the request.
    pub choice_index: u32,
}

/// Where a sequence is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequenceState {
    /// Not started; holds no block.
    Waiting,
    /// Part of the batch; holds blocks.
    Running,
    /// Gave its blocks back; waits to recompute prompt and reply so far.
    Preempted,
    /// Ended; holds no block.
    Finished,
}

/// Tokens of one choice and how far they are computed.
#[derive(Clone, Debug)]
pub struct Sequence {
    /// Its name.
    pub seq_id: SeqId,
    /// Where it is in its life.
    pub state: SequenceState,
    /// Prompt, then the reply so far.
    pub token_ids: Vec<TokenId>,
    /// Length of the prompt, as far as it goes through the model.
    pub num_prompt_tokens: usize,
    /// First prompt row whose logits are still wanted for the score of the token behind it; moves on as rows are
    /// computed, and stays where it is when they are computed again. `None` wants none but the last token's row.
    /// A cache may stand in only for rows below it.
    pub scored_from: Option<usize>,
    /// Leading tokens whose keys and values stand in `block_table`.
    pub num_computed_tokens: usize,
    /// Prompt tokens that came from the prefix cache and were never computed for this sequence.
    pub num_cached_tokens: usize,
    /// KV blocks held, covering at least the computed tokens.
    pub block_table: Vec<BlockId>,
    /// Whose blocks it may share.
    pub cache_salt: CacheSalt,
    /// Whether the logits of its last token's row are wanted.
    pub wants_last_row: bool,
    /// Whether the prefix cache keeps what is computed for it.
    pub is_cached: bool,
    /// Leading tokens that it computed or reused before a preemption.
    num_known_tokens: usize,
}

impl Sequence {
    /// A waiting sequence.
    ///
    /// # Panics
    /// If the prompt is empty: there would be no row to draw from.
    pub fn new(seq_id: SeqId, prompt_token_ids: Vec<TokenId>, cache_salt: CacheSalt) -> Self {
        assert!(!prompt_token_ids.is_empty(), "{seq_id:?} has no prompt");
        Self {
            seq_id,
            state: SequenceState::Waiting,
            num_prompt_tokens: prompt_token_ids.len(),
            scored_from: None,
            token_ids: prompt_token_ids,
            num_computed_tokens: 0,
            num_cached_tokens: 0,
            block_table: Vec::new(),
            cache_salt,
            wants_last_row: true,
            is_cached: true,
            num_known_tokens: 0,
        }
    }

    /// Asks for the logits of the prompt's rows from `row` on, the last token's own aside.
    pub fn with_scores_from(self, row: Option<usize>) -> Self {
        Self {
            scored_from: row,
            ..self
        }
    }

    /// How many of the next `num_rows` uncomputed rows have their logits wanted for a score: the last ones before
    /// the prompt's last token.
    pub fn num_scored_rows(&self, num_rows: usize) -> usize {
        let begin = self.num_computed_tokens;
        let end = (begin + num_rows).min(self.num_prompt_tokens - 1);
        self.scored_from
            .map_or(0, |row| end.saturating_sub(row.max(begin)))
    }

    /// Tokens known but not computed; at least 1 until the sequence ends, or only its branches are left.
    pub fn num_uncomputed_tokens(&self) -> usize {
        self.token_ids.len() - self.num_computed_tokens
    }

    /// Leading tokens that may come from the cache: none whose row is still wanted, and never the last one, whose
    /// row gives the next token.
    pub fn max_reused_tokens(&self) -> usize {
        let last = self.token_ids.len() - 1;
        self.scored_from.map_or(last, |row| row.min(last))
    }

    /// Books the first `num_tokens` as taken from the cache.
    pub(crate) fn reuse(&mut self, num_tokens: usize) {
        let num_before = self.num_computed_tokens.max(self.num_known_tokens);
        self.num_cached_tokens += num_tokens
            .min(self.num_prompt_tokens)
            .saturating_sub(num_before);
        self.num_computed_tokens = num_tokens;
    }

    /// Books that all blocks were given back.
    pub(crate) fn forget(&mut self) {
        self.num_known_tokens = self.num_known_tokens.max(self.num_computed_tokens);
        self.num_computed_tokens = 0;
    }

    /// The reply so far.
    pub fn output_token_ids(&self) -> &[TokenId] {
        &self.token_ids[self.num_prompt_tokens..]
    }
}
