//! Counters and gauges of a running engine. Times are the server's business: the engine has no clock.

use crate::block_manager::PrefixCache;
use crate::output::{FinishReason, RequestError};
use crate::scheduler::Scheduler;
use crate::sequence::SeqId;

/// A snapshot, taken after scheduling and again after each step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineStats {
    /// Sequences in the batch now.
    pub num_running: usize,
    /// Sequences that wait for a place or for blocks now, preempted ones included.
    pub num_waiting: usize,
    /// KV blocks that sequences hold now.
    pub num_kv_blocks_used: usize,
    /// KV blocks that no sequence holds, kept for the tokens in them.
    pub num_kv_blocks_cached: usize,
    /// KV blocks in the pool.
    pub num_kv_blocks: usize,
    /// Forward passes run.
    pub num_steps: u64,
    /// Token rows run, recomputation included.
    pub num_computed_tokens: u64,
    /// Prompt tokens of requests whose prompt is through: drawn from, or scored to its end; once per request.
    pub num_prompt_tokens: u64,
    /// Tokens drawn, ending ones included.
    pub num_generation_tokens: u64,
    /// Drafts that went through the model, each behind one row that decodes.
    pub num_drafts: u64,
    /// Tokens of those drafts.
    pub num_draft_tokens: u64,
    /// Draft tokens that plain decoding drew as well, and that the reply went on with.
    pub num_accepted_tokens: u64,
    /// Prompt tokens looked for in the prefix cache: those of every choice whose prompt is through.
    pub num_prefix_cache_queries: u64,
    /// Those of them that were found.
    pub num_prefix_cache_hits: u64,
    /// Requests answered from a kept row of logits, without a pass.
    pub num_row_cache_hits: u64,
    /// Cached KV blocks given up for others.
    pub num_prefix_cache_evictions: u64,
    /// Times a sequence gave its blocks back.
    pub num_preemptions: u64,
    /// Requests that failed of a non-finite logit.
    pub num_numerical_errors: u64,
    /// Choices ended by an end token.
    pub num_finished_end_token: u64,
    /// Choices ended by a stop string.
    pub num_finished_stop_string: u64,
    /// Choices ended by `max_tokens`.
    pub num_finished_length: u64,
    /// Choices whose client had gone, and decisions.
    pub num_cancelled: u64,
    /// Choices of failed requests, and failed decisions.
    pub num_failed: u64,
    /// Decisions read to their end.
    pub num_decisions: u64,
    /// Distinct label edges of those decisions.
    pub num_trie_edges: u64,
}

impl EngineStats {
    /// Counts the prompt of a choice that is through.
    pub(crate) fn count_cache_use(&mut self, scheduler: &Scheduler, seq_id: SeqId) {
        if scheduler.blocks().prefix_cache() == PrefixCache::On
            && let Some(sequence) = scheduler.sequence(seq_id)
        {
            self.num_prefix_cache_queries += sequence.num_prompt_tokens as u64;
            self.num_prefix_cache_hits += sequence.num_cached_tokens as u64;
        }
    }

    /// Counts a failure of so many choices.
    pub(crate) fn count_failure(&mut self, error: &RequestError, num_choices: u64) {
        self.num_failed += num_choices;
        if matches!(error, RequestError::NumericalError { .. }) {
            self.num_numerical_errors += 1;
        }
    }

    pub(crate) fn count_finish(&mut self, reason: &FinishReason) {
        let counter = match reason {
            FinishReason::EndToken(_) => &mut self.num_finished_end_token,
            FinishReason::StopString(_) => &mut self.num_finished_stop_string,
            FinishReason::Length => &mut self.num_finished_length,
        };
        *counter += 1;
    }
}
