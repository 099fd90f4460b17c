//! How one step's prefill budget is shared among unfinished prompts.
//!
//! Knows costs and the order of arrival; nothing of blocks, decoding or limits of a scheduler. The
//! bounds that the shares give stand in `scheduler/mod.rs`.

use crate::row_cost::{RowCost, Run};
use crate::sequence::SeqId;

/// What a step can take of a prompt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnfinishedPrompt {
    pub(crate) seq_id: SeqId,
    /// Its uncomputed rows, at least one.
    pub(crate) rows: Run,
    /// Whether it draws on the long prompts' part.
    pub(crate) is_long: bool,
}

/// What prefill may still cost in a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PrefillBudget {
    /// Of all prompts.
    pub(crate) all: u64,
    /// Of the long prompts together, within `all`.
    pub(crate) long: u64,
}

impl PrefillBudget {
    fn left_for(self, prompt: UnfinishedPrompt) -> u64 {
        if prompt.is_long {
            self.long.min(self.all)
        } else {
            self.all
        }
    }

    /// `cost` is at most what is left for the prompt.
    fn charge(&mut self, prompt: UnfinishedPrompt, cost: u64) {
        self.all -= cost;
        if prompt.is_long {
            self.long -= cost;
        }
    }
}

/// Rows for each prompt that gets any, the oldest first. `prompts` is in order of arrival.
///
/// Half of what it may draw on goes to the oldest, and one row whatever it costs; then the cheapest
/// remainder first; what they leave is the oldest's.
pub(crate) fn share(
    costs: RowCost,
    mut budget: PrefillBudget,
    prompts: Vec<UnfinishedPrompt>,
) -> Vec<(UnfinishedPrompt, usize)> {
    let mut prompts = prompts.into_iter();
    let Some(oldest) = prompts.next() else {
        return Vec::new();
    };
    let half = budget.left_for(oldest).div_ceil(2);
    let mut oldest_rows = costs.rows_within(oldest.rows, half).max(1);
    // One row that costs more than its half does not take from the others'.
    let oldest_cost = costs.of(oldest.rows.first(oldest_rows)).min(half);
    budget.charge(oldest, oldest_cost);

    let mut cheapest_first: Vec<UnfinishedPrompt> = prompts.collect();
    cheapest_first.sort_unstable_by_key(|prompt| (prompt.rows.cost_of_rows(), prompt.seq_id));
    let mut shares = Vec::new();
    for prompt in cheapest_first {
        let num_rows = costs.rows_within(prompt.rows, budget.left_for(prompt));
        budget.charge(prompt, costs.of(prompt.rows.first(num_rows)));
        if num_rows > 0 {
            shares.push((prompt, num_rows));
        }
    }
    let rest = oldest.rows.behind(oldest_rows);
    oldest_rows += costs.rows_within(rest, budget.left_for(oldest));
    shares.insert(0, (oldest, oldest_rows));
    shares
}
