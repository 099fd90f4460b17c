//! What a step's rows may cost, and how much of it is left.

use super::{DRAFT_PART, INTERACTIVE_LEAST, INTERACTIVE_PART, Scheduler, SchedulerOutput};
use crate::prefill::PrefillBudget;
use crate::row_cost::{self, RowCost, Run};

impl Scheduler {
    /// What decode left, and the long prompts' part of it: all of it for a sequence that is alone.
    pub(super) fn prefill_budget(&self, decode: &SchedulerOutput) -> PrefillBudget {
        let all = self.cost_left(decode);
        let is_alone = self.is_alone();
        let long = if is_alone {
            all
        } else {
            all.min(self.interactive_cost())
        };
        PrefillBudget { all, long }
    }

    /// What the rows of `output` leave of a step's budget.
    pub(super) fn cost_left(&self, output: &SchedulerOutput) -> u64 {
        let cost = output
            .scheduled
            .iter()
            .filter_map(|scheduled| {
                let sequence = self.sequences.get(&scheduled.seq_id)?;
                let num_rows = scheduled.num_rows();
                Some(self.costs().of(Run {
                    position: sequence.num_computed_tokens,
                    num_rows,
                    num_plain: num_rows - scheduled.num_logit_rows(),
                }))
            })
            .sum();
        row_cost::of_budget(self.config.max_num_batched_tokens).saturating_sub(cost)
    }

    /// Draft rows from `position` on that `output` may still take.
    pub(super) fn num_draft_rows_left(&self, output: &SchedulerOutput, position: usize) -> usize {
        let num_left = self.config.max_num_batched_tokens - output.num_tokens();
        let rows = Run {
            position,
            num_rows: num_left,
            num_plain: 0,
        };
        let num_left = self.costs().rows_within(rows, self.cost_left(output));
        let num_left = num_left.min(self.num_rows_begun(output));
        if self.is_alone() {
            return num_left;
        }
        let num_drafted = output.num_draft_tokens();
        let num_others = output.num_tokens() - num_drafted;
        num_left.min((num_others / DRAFT_PART).saturating_sub(num_drafted))
    }

    /// Rows that cost next to nothing, because those of `output` are computed together with so many more.
    pub(super) fn num_rows_begun(&self, output: &SchedulerOutput) -> usize {
        match self.config.rows_at_once {
            1 => usize::MAX,
            rows_at_once => {
                let num_rows = output.num_tokens();
                num_rows.next_multiple_of(rows_at_once) - num_rows
            }
        }
    }

    /// Whether all that is queued or runs is one sequence and its branches.
    pub(super) fn is_alone(&self) -> bool {
        self.running.len() + self.waiting.len() == 1
    }

    pub(super) fn costs(&self) -> RowCost {
        RowCost {
            logits: self.config.logits_cost,
        }
    }

    /// What long prompts may cost beside others, and what makes a prompt long.
    pub(super) fn interactive_cost(&self) -> u64 {
        let part = self.config.max_num_batched_tokens / INTERACTIVE_PART;
        row_cost::of_budget(part.max(INTERACTIVE_LEAST))
    }
}
