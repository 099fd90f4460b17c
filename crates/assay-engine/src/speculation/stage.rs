//! The step's draft stage: rows that decode get the tokens that may follow them.

use super::odds;
use super::{DraftSlot, MAX_DRAFT_TOKENS};
use crate::engine_core::EngineCore;
use crate::scheduler::SchedulerOutput;

impl EngineCore {
    /// Adds drafts behind the rows that decode, out of what they leave of the step.
    pub(crate) fn draft(&mut self, scheduled: &mut SchedulerOutput) {
        if self.drafter.is_off() {
            return;
        }
        let decoding: Vec<usize> = (0..scheduled.scheduled.len())
            .filter(|&index| scheduled.scheduled[index].is_decode())
            .collect();
        // It looks at the rest of the engine's state while it drafts.
        let mut drafter = std::mem::take(&mut self.drafter);
        let row_cost = odds::row_cost(decoding.len());
        let slots: Vec<DraftSlot<'_>> = decoding
            .iter()
            .map(|&index| {
                let seq_id = scheduled.scheduled[index].seq_id;
                let sequence = self
                    .scheduler
                    .sequence(seq_id)
                    .expect("scheduled sequences are live until the step is applied");
                // All accepted, one more token is drawn behind them: never past `max_tokens`, and so never past
                // the context or what the pool can hold.
                let limit = self.num_tokens_left(seq_id).saturating_sub(1);
                DraftSlot {
                    seq_id,
                    token_ids: &sequence.token_ids,
                    num_prompt_tokens: sequence.num_prompt_tokens,
                    limit: limit.min(MAX_DRAFT_TOKENS),
                    row_cost,
                }
            })
            .collect();
        let drafts = drafter.propose(&slots);
        self.drafter = drafter;
        for (index, draft) in decoding.into_iter().zip(drafts) {
            self.scheduler.add_draft(scheduled, index, draft);
        }
        self.count_drafts(scheduled);
    }
}
