//! What the scheduler picked for one step.

use assay_models::{KvBlockCopy, TokenId};

use crate::sequence::SeqId;

/// One sequence's part of a step: its next `num_scheduled_tokens` uncomputed tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduledSequence {
    /// Whose tokens.
    pub seq_id: SeqId,
    /// How many, ≥ 1.
    pub num_scheduled_tokens: usize,
    /// Rows whose logits score the prompt token behind them: the last ones, the sequence's last token aside.
    pub num_scored_rows: usize,
    /// Whether they reach the sequence's last token, whose logits give the next one.
    pub wants_logits: bool,
    /// Guesses of the tokens that follow the last one, computed with it; only where it decodes.
    pub draft_token_ids: Vec<TokenId>,
}

impl ScheduledSequence {
    /// Rows that go through the model.
    pub fn num_rows(&self) -> usize {
        self.num_scheduled_tokens + self.draft_token_ids.len()
    }

    /// Rows whose logits are wanted: so many of the last ones.
    pub fn num_logit_rows(&self) -> usize {
        self.num_scored_rows + usize::from(self.wants_logits) + self.draft_token_ids.len()
    }

    /// Whether all that it computes is the row that gives its next token.
    pub fn is_decode(&self) -> bool {
        self.num_scheduled_tokens == 1 && self.wants_logits
    }

    /// Leading draft tokens that were drawn just so; `drawn` are the tokens drawn for it that its sequence goes on
    /// with, in order.
    pub(super) fn num_accepted(&self, drawn: &[TokenId]) -> usize {
        let pairs = self.draft_token_ids.iter().zip(drawn);
        pairs.take_while(|(draft, drawn)| draft == drawn).count()
    }
}

/// What runs in one step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchedulerOutput {
    /// Decode rows first, then prefill; each sequence once.
    pub scheduled: Vec<ScheduledSequence>,
    /// Sequences that gave their blocks back in this step, latest arrival first.
    pub preempted: Vec<SeqId>,
    /// To be carried out in this order, before the step's rows are written.
    pub block_copies: Vec<KvBlockCopy>,
}

impl SchedulerOutput {
    /// Token rows of the step, drafts included.
    pub fn num_tokens(&self) -> usize {
        self.scheduled.iter().map(ScheduledSequence::num_rows).sum()
    }

    /// Draft rows of the step.
    pub fn num_draft_tokens(&self) -> usize {
        self.scheduled.iter().map(|s| s.draft_token_ids.len()).sum()
    }
}
