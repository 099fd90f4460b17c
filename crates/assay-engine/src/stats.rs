//! Counters and gauges of a running engine. Times are the server's business: the engine has no clock.

use crate::output::FinishReason;

/// A snapshot, taken after scheduling and again after each step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineStats {
    /// Sequences in the batch now.
    pub num_running: usize,
    /// Sequences that wait for a place or for blocks now, preempted ones included.
    pub num_waiting: usize,
    /// KV blocks held now.
    pub num_kv_blocks_used: usize,
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
    /// Choices whose client had gone.
    pub num_cancelled: u64,
    /// Choices of failed requests.
    pub num_failed: u64,
}

impl EngineStats {
    pub(crate) fn count_finish(&mut self, reason: &FinishReason) {
        let counter = match reason {
            FinishReason::EndToken(_) => &mut self.num_finished_end_token,
            FinishReason::StopString(_) => &mut self.num_finished_stop_string,
            FinishReason::Length => &mut self.num_finished_length,
        };
        *counter += 1;
    }
}
