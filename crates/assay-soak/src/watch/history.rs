//! What stands in each KV slot, as the history of tokens that it was computed from.

use std::collections::BTreeMap;

use assay_engine::prefix_tree::CacheSalt;
use assay_engine::scheduler::{Scheduler, SchedulerOutput};
use assay_engine::sequence::{SeqId, Sequence};
use assay_models::{BlockId, TokenId};

/// All tokens of a sequence up to one, as a number.
type History = u64;

/// What the naive model knows of tokens and slots.
#[derive(Default)]
pub(super) struct Histories {
    /// `[num_tokens]` of each live sequence.
    sequences: BTreeMap<SeqId, Vec<History>>,
    /// `[num_blocks * block_tokens]`; `None` was never written.
    slots: Vec<Option<History>>,
    /// `[num_blocks]` salt of whoever wrote there last.
    salts: Vec<CacheSalt>,
}

impl Histories {
    /// Tokens that the sequence had when it was last looked at.
    pub(super) fn num_tokens(&self, seq_id: SeqId) -> usize {
        self.sequences.get(&seq_id).map_or(0, Vec::len)
    }

    /// The history of a live sequence up to its token `index`.
    pub(super) fn of_token(&self, seq_id: SeqId, index: usize) -> Option<History> {
        self.sequences.get(&seq_id)?.get(index).copied()
    }

    /// Takes in new sequences and tokens, and forgets who has gone.
    pub(super) fn follow(&mut self, scheduler: &Scheduler) {
        self.sequences
            .retain(|&seq_id, _| scheduler.sequence(seq_id).is_some());
        for sequence in scheduler.sequences() {
            let histories = self.sequences.entry(sequence.seq_id).or_default();
            for &token_id in &sequence.token_ids[histories.len()..] {
                let before = histories.last().copied();
                histories.push(after(before, token_id));
            }
        }
    }

    /// Carries out a step as the model will: copies, then writes, then reads; what is wrong with them.
    pub(super) fn run(&mut self, scheduler: &Scheduler, output: &SchedulerOutput) -> Vec<String> {
        self.follow(scheduler);
        let block_tokens = scheduler.blocks().block_size_tokens();
        let num_blocks = scheduler.blocks().num_blocks();
        self.slots.resize(num_blocks * block_tokens, None);
        self.salts.resize(num_blocks, None);
        for copy in &output.block_copies {
            let (from, to) = (copy.from.0 as usize, copy.to.0 as usize);
            self.slots.copy_within(
                from * block_tokens..(from + 1) * block_tokens,
                to * block_tokens,
            );
            self.salts[to] = self.salts[from].clone();
        }
        let mut faults = Vec::new();
        for entry in &output.scheduled {
            let Some(sequence) = scheduler.sequence(entry.seq_id) else {
                faults.push(format!("{:?} runs but does not live", entry.seq_id));
                continue;
            };
            let begin = sequence.num_computed_tokens;
            let known = begin + entry.num_scheduled_tokens;
            let mut histories = self.sequences[&entry.seq_id][..known].to_vec();
            for &token_id in &entry.draft_token_ids {
                histories.push(after(histories.last().copied(), token_id));
            }
            for (position, &history) in histories.iter().enumerate() {
                let Some(&BlockId(block)) = sequence.block_table.get(position / block_tokens)
                else {
                    faults.push(format!("{:?} has no block for {position}", entry.seq_id));
                    break;
                };
                let block = block as usize;
                let slot = &mut self.slots[block * block_tokens + position % block_tokens];
                if position >= begin {
                    if scheduler.blocks().num_references()[block] != 1 {
                        faults.push(format!("{:?} writes to a shared block", entry.seq_id));
                    }
                    *slot = Some(history);
                    self.salts[block].clone_from(&sequence.cache_salt);
                } else if *slot != Some(history) {
                    faults.push(format!(
                        "{:?} reads block {block} at {position}: {}",
                        entry.seq_id,
                        slot.map_or("never written", |_| "another history"),
                    ));
                }
                if self.salts[block] != sequence.cache_salt {
                    faults.push(format!("{:?} reads another salt's block", entry.seq_id));
                }
            }
        }
        faults
    }

    /// Whether all computed tokens of `sequence` stand where its block table says.
    pub(super) fn is_stored(&self, sequence: &Sequence, block_tokens: usize) -> bool {
        let Some(histories) = self.sequences.get(&sequence.seq_id) else {
            return sequence.num_computed_tokens == 0;
        };
        let computed = histories.iter().take(sequence.num_computed_tokens);
        computed.enumerate().all(|(position, &history)| {
            let block = sequence.block_table.get(position / block_tokens);
            block.is_some_and(|block| {
                let slot = block.0 as usize * block_tokens + position % block_tokens;
                self.slots.get(slot) == Some(&Some(history))
            })
        })
    }
}

/// The history that `token_id` makes of the one before it.
fn after(before: Option<History>, token_id: TokenId) -> History {
    let mixed = before.unwrap_or(0x5157_ab00) ^ (u64::from(token_id) + 1);
    let mixed = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}
