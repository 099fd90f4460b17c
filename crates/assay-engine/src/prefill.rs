//! How one step's prefill budget is shared among unfinished prompts.
//!
//! Knows costs and the order of arrival; nothing of blocks, decoding or limits of a scheduler. The
//! bounds that the shares give stand in `scheduler/mod.rs`.

use crate::row_cost;
use crate::sequence::SeqId;

/// What a step can take of a prompt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnfinishedPrompt {
    pub(crate) seq_id: SeqId,
    /// First uncomputed row.
    pub(crate) position: usize,
    /// Uncomputed rows, ≥ 1.
    pub(crate) num_left: usize,
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
    mut budget: PrefillBudget,
    prompts: Vec<UnfinishedPrompt>,
) -> Vec<(UnfinishedPrompt, usize)> {
    let mut prompts = prompts.into_iter();
    let Some(oldest) = prompts.next() else {
        return Vec::new();
    };
    let half = budget.left_for(oldest).div_ceil(2);
    let mut oldest_rows = row_cost::rows_within(oldest.position, oldest.num_left, half).max(1);
    // One row that costs more than its half does not take from the others'.
    let oldest_cost = row_cost::of_rows(oldest.position, oldest_rows).min(half);
    budget.charge(oldest, oldest_cost);

    let mut cheapest_first: Vec<UnfinishedPrompt> = prompts.collect();
    cheapest_first.sort_unstable_by_key(|prompt| {
        let cost = row_cost::of_rows(prompt.position, prompt.num_left);
        (cost, prompt.seq_id)
    });
    let mut shares = Vec::new();
    for prompt in cheapest_first {
        let left = budget.left_for(prompt);
        let num_rows = row_cost::rows_within(prompt.position, prompt.num_left, left);
        budget.charge(prompt, row_cost::of_rows(prompt.position, num_rows));
        if num_rows > 0 {
            shares.push((prompt, num_rows));
        }
    }
    oldest_rows += row_cost::rows_within(
        oldest.position + oldest_rows,
        oldest.num_left - oldest_rows,
        budget.left_for(oldest),
    );
    shares.insert(0, (oldest, oldest_rows));
    shares
}
