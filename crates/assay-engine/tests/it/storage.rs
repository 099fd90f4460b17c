//! What stands in the KV slots, as the scheduler's steps leave it: the naive reference for sharing.
//!
//! A slot's keys and values depend on the salt's tenant and on every token up to the slot's own, so that
//! is what a slot holds here (as a hash). A block of another prompt, a block written while shared or a
//! copy in the wrong order shows as a wrong slot.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use assay_engine::scheduler::{Scheduler, SchedulerOutput};
use assay_engine::sequence::{SeqId, Sequence};

pub(crate) struct Storage {
    block_tokens: usize,
    slots: Vec<Option<u64>>,
    contents: BTreeMap<SeqId, Contents>,
    num_checks: usize,
}

/// What each position's slot of a sequence must hold.
struct Contents {
    hasher: DefaultHasher,
    of_positions: Vec<u64>,
}

impl Storage {
    pub(crate) fn new(num_blocks: usize, block_tokens: usize) -> Self {
        Self {
            block_tokens,
            slots: vec![None; num_blocks * block_tokens],
            contents: BTreeMap::new(),
            num_checks: 0,
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
            self.learn(sequence);
            let contents = &self.contents[&scheduled.seq_id].of_positions;
            let begin = sequence.num_computed_tokens;
            let end = begin + scheduled.num_scheduled_tokens;
            for (position, &content) in contents.iter().enumerate().take(end).skip(begin) {
                let block = sequence.block_table[position / self.block_tokens];
                let num_holders = holders[block.0 as usize];
                assert_eq!(num_holders, 1, "{block:?} is written while shared");
                let index = slot_index(sequence, position, self.block_tokens);
                self.slots[index] = Some(content);
            }
        }
    }

    /// Every sequence finds in its blocks what it would have computed itself. Of sequences of thousands of
    /// tokens, all but the last ones are looked at every now and then.
    pub(crate) fn check(&mut self, scheduler: &Scheduler) {
        let looks_at_all = self.num_checks.is_multiple_of(64);
        self.num_checks += 1;
        for sequence in scheduler.sequences() {
            self.learn(sequence);
            let contents = &self.contents[&sequence.seq_id].of_positions;
            let end = sequence.num_computed_tokens;
            let begin = if looks_at_all {
                0
            } else {
                end.saturating_sub(256)
            };
            for (position, &content) in (begin..end).zip(&contents[begin..end]) {
                let slot = self.slots[slot_index(sequence, position, self.block_tokens)];
                let seq_id = sequence.seq_id;
                assert_eq!(slot, Some(content), "{seq_id:?} at position {position}");
            }
        }
    }

    /// Keeps up with the sequence's tokens.
    fn learn(&mut self, sequence: &Sequence) {
        let contents = self.contents.entry(sequence.seq_id).or_insert_with(|| {
            let mut hasher = DefaultHasher::new();
            sequence.cache_salt.hash(&mut hasher);
            Contents {
                hasher,
                of_positions: Vec::new(),
            }
        });
        for token_id in &sequence.token_ids[contents.of_positions.len()..] {
            token_id.hash(&mut contents.hasher);
            contents.of_positions.push(contents.hasher.finish());
        }
    }
}

fn slot_index(sequence: &Sequence, position: usize, block_tokens: usize) -> usize {
    let block = sequence.block_table[position / block_tokens];
    block.0 as usize * block_tokens + position % block_tokens
}

/// `[num_blocks]` how many block tables name each block.
pub(crate) fn holders(scheduler: &Scheduler) -> Vec<u32> {
    let mut holders = vec![0; scheduler.blocks().num_blocks()];
    let sequences = scheduler.sequences();
    for block in sequences.flat_map(|sequence| &sequence.block_table) {
        holders[block.0 as usize] += 1;
    }
    holders
}
