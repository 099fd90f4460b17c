//! What stands in the KV slots, as the scheduler's steps leave it: the naive reference for sharing.
//!
//! A slot's keys and values depend on the salt's tenant and on every token up to the slot's own, so that
//! is what a slot holds here (as a hash). A block of another prompt, a block written while shared or a
//! copy in the wrong order shows as a wrong slot.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use assay_engine::scheduler::{Scheduler, SchedulerOutput};
use assay_engine::sequence::Sequence;
use assay_models::BlockId;

pub(crate) struct Storage {
    block_tokens: usize,
    slots: Vec<Option<u64>>,
}

impl Storage {
    pub(crate) fn new(num_blocks: usize, block_tokens: usize) -> Self {
        Self {
            block_tokens,
            slots: vec![None; num_blocks * block_tokens],
        }
    }

    /// Copies, then writes, as a forward pass does. To be called before the step is booked.
    pub(crate) fn run(&mut self, scheduler: &Scheduler, output: &SchedulerOutput) {
        for copy in &output.block_copies {
            let [from, to] = [copy.from, copy.to].map(|block| block.0 as usize * self.block_tokens);
            self.slots.copy_within(from..from + self.block_tokens, to);
        }
        let holders = holders(scheduler);
        for scheduled in &output.scheduled {
            let sequence = scheduler.sequence(scheduled.seq_id).expect("it is live");
            let contents = contents(sequence);
            let begin = sequence.num_computed_tokens;
            for position in begin..begin + scheduled.num_scheduled_tokens {
                let block = sequence.block_table[position / self.block_tokens];
                assert_eq!(holders[&block], 1, "{block:?} is written while shared");
                let index = self.slot_index(sequence, position);
                self.slots[index] = Some(contents[position]);
            }
        }
    }

    /// Every sequence finds in its blocks what it would have computed itself.
    pub(crate) fn check(&self, scheduler: &Scheduler) {
        for sequence in scheduler.sequences() {
            let contents = contents(sequence);
            for (position, &content) in contents[..sequence.num_computed_tokens].iter().enumerate()
            {
                let slot = self.slots[self.slot_index(sequence, position)];
                assert_eq!(
                    slot,
                    Some(content),
                    "{:?} at position {position}",
                    sequence.seq_id
                );
            }
        }
    }

    fn slot_index(&self, sequence: &Sequence, position: usize) -> usize {
        let block = sequence.block_table[position / self.block_tokens];
        block.0 as usize * self.block_tokens + position % self.block_tokens
    }
}

/// How many block tables name each held block.
pub(crate) fn holders(scheduler: &Scheduler) -> BTreeMap<BlockId, u32> {
    let mut holders = BTreeMap::new();
    for sequence in scheduler.sequences() {
        for &block in &sequence.block_table {
            *holders.entry(block).or_insert(0) += 1;
        }
    }
    holders
}

/// `[num_tokens]` what each position's slot must hold.
fn contents(sequence: &Sequence) -> Vec<u64> {
    let mut hasher = DefaultHasher::new();
    sequence.cache_salt.hash(&mut hasher);
    let token_ids = sequence.token_ids.iter();
    token_ids
        .map(|token_id| {
            token_id.hash(&mut hasher);
            hasher.finish()
        })
        .collect()
}
