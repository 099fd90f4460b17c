//! The step's draft stage: rows that decode get the tokens that may follow them.

use assay_models::ForwardError;

use super::DraftSlot;
use crate::engine_core::EngineCore;
use crate::scheduler::SchedulerOutput;

/// What all drafts of a step are bound by.
struct DraftLimits {
    /// Tokens of one draft at most.
    num_tokens: usize,
    /// What the row of a draft token costs, in tokens.
    row_cost: f64,
}

impl EngineCore {
    /// Adds drafts behind the rows that decode, out of what the step's other rows leave.
    ///
    /// # Errors
    /// The draft model's, which is a broken invariant: no request can cause it.
    pub(crate) fn draft(&mut self, scheduled: &mut SchedulerOutput) -> Result<(), ForwardError> {
        if self.drafter.is_off() {
            return Ok(());
        }
        let decoding: Vec<usize> = (0..scheduled.scheduled.len())
            .filter(|&index| {
                let entry = &scheduled.scheduled[index];
                // A decision's tokens are known: there is nothing to guess.
                entry.is_decode() && self.request_and_choice(entry.seq_id).is_some()
            })
            .collect();
        // It looks at the rest of the engine's state while it drafts.
        let mut drafter = std::mem::take(&mut self.drafter);
        let limits = DraftLimits {
            num_tokens: drafter.max_draft_tokens(),
            row_cost: drafter.row_cost(decoding.len()),
        };
        let slots: Vec<DraftSlot<'_>> = decoding
            .iter()
            .map(|&index| self.draft_slot(scheduled, index, &limits))
            .collect();
        let drafts = drafter.propose(&slots);
        self.drafter = drafter;
        for (index, draft) in decoding.into_iter().zip(drafts?) {
            self.scheduler.add_draft(scheduled, index, draft);
        }
        self.count_drafts(scheduled);
        Ok(())
    }

    fn draft_slot(
        &self,
        scheduled: &SchedulerOutput,
        index: usize,
        limits: &DraftLimits,
    ) -> DraftSlot<'_> {
        let seq_id = scheduled.scheduled[index].seq_id;
        let sequence = self
            .scheduler
            .sequence(seq_id)
            .expect("scheduled sequences are live until the step is applied");
        let (request, choice) = self
            .request_and_choice(seq_id)
            .expect("a scheduled sequence's choice is unfinished");
        let num_tokens_left = request
            .max_tokens
            .saturating_sub(choice.num_output_tokens());
        // All accepted, one more token is drawn behind them: never past `max_tokens`, and so never past the
        // context or what the pool can hold.
        let limit = num_tokens_left.saturating_sub(1) as usize;
        DraftSlot {
            seq_id,
            token_ids: &sequence.token_ids,
            num_prompt_tokens: sequence.num_prompt_tokens,
            sampling: &request.sampling,
            seen: &choice.seen,
            limit: limit.min(limits.num_tokens),
            row_cost: limits.row_cost,
        }
    }
}
