//! Scheduler and block manager against a naive reference, over random operations.

use std::collections::{BTreeMap, BTreeSet};

use assay_engine::block_manager::BlockManager;
use assay_engine::scheduler::{ScheduledSequence, Scheduler, SchedulerConfig, SchedulerOutput};
use assay_engine::sequence::{SeqId, Sequence, SequenceState};
use assay_models::BlockId;
use proptest::prelude::*;

/// Cost of a row at position 0, in keys of attention.
pub(crate) const ROW: usize = 2048;
const BLOCK_TOKENS: usize = 4;
const MAX_PROMPT: usize = 50;
const MAX_REPLY: usize = 12;

#[derive(Clone, Debug)]
enum Operation {
    Add { num_prompt: usize, num_reply: usize },
    Step,
    Cancel { nth: usize },
}

fn any_operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        2 => (1..=MAX_PROMPT, 1..=MAX_REPLY)
            .prop_map(|(num_prompt, num_reply)| Operation::Add { num_prompt, num_reply }),
        5 => Just(Operation::Step),
        1 => any::<usize>().prop_map(|nth| Operation::Cancel { nth }),
    ]
}

/// What the reference knows of a sequence: plain counts.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    pub(crate) num_tokens: usize,
    pub(crate) num_computed: usize,
    num_reply_left: usize,
}

/// The scheduler beside its reference; every method checks.
pub(crate) struct Checked {
    scheduler: Scheduler,
    config: SchedulerConfig,
    num_blocks: usize,
    pub(crate) live: BTreeMap<SeqId, Expected>,
    num_added: u64,
    num_preemptions: usize,
}

impl Checked {
    pub(crate) fn new(config: SchedulerConfig, num_blocks: usize) -> Self {
        Self {
            scheduler: Scheduler::new(config, BlockManager::new(num_blocks, BLOCK_TOKENS)),
            config,
            num_blocks,
            live: BTreeMap::new(),
            num_added: 0,
            num_preemptions: 0,
        }
    }

    pub(crate) fn add(&mut self, num_prompt: usize, num_reply: usize) -> SeqId {
        let seq_id = SeqId {
            arrival: self.num_added,
            choice_index: 0,
        };
        self.num_added += 1;
        self.scheduler
            .add(Sequence::new(seq_id, vec![7; num_prompt]));
        let expected = Expected {
            num_tokens: num_prompt,
            num_computed: 0,
            num_reply_left: num_reply,
        };
        self.live.insert(seq_id, expected);
        seq_id
    }

    fn cancel(&mut self, nth: usize) {
        if self.live.is_empty() {
            return;
        }
        let seq_id = *self
            .live
            .keys()
            .nth(nth % self.live.len())
            .expect("inside the map");
        self.finish(seq_id);
    }

    pub(crate) fn finish(&mut self, seq_id: SeqId) {
        let finished = self.scheduler.finish(seq_id).expect("it was live");
        assert_eq!(finished.state, SequenceState::Finished, "{seq_id:?}");
        assert!(finished.block_table.is_empty(), "{seq_id:?} kept blocks");
        self.live.remove(&seq_id);
        assert!(
            self.scheduler.finish(seq_id).is_none(),
            "{seq_id:?} ended twice"
        );
        self.check_blocks();
    }

    pub(crate) fn step(&mut self) -> SchedulerOutput {
        let running_before: BTreeSet<SeqId> = self.in_state(SequenceState::Running);
        let output = self.scheduler.schedule();
        self.check_output(&output, &running_before);
        self.check_blocks();

        let mut drawn = Vec::new();
        for scheduled in &output.scheduled {
            let expected = self.live.get_mut(&scheduled.seq_id).expect("it is live");
            expected.num_computed += scheduled.num_scheduled_tokens;
            if scheduled.wants_logits {
                expected.num_reply_left -= 1;
                if expected.num_reply_left > 0 {
                    expected.num_tokens += 1;
                    drawn.push((scheduled.seq_id, 9));
                }
            }
        }
        let ended: Vec<SeqId> = self
            .live
            .iter()
            .filter(|(_, expected)| expected.num_reply_left == 0)
            .map(|(&seq_id, _)| seq_id)
            .collect();
        for seq_id in ended {
            self.finish(seq_id);
        }
        self.scheduler.apply(&output, &drawn);
        self.check_counts();
        output
    }

    fn check_output(&mut self, output: &SchedulerOutput, running_before: &BTreeSet<SeqId>) {
        assert!(
            output.num_tokens() <= self.config.max_num_batched_tokens,
            "token budget: {output:?}"
        );
        assert!(
            output.scheduled.len() <= self.config.max_num_seqs
                && self.scheduler.num_running() <= self.config.max_num_seqs,
            "sequence budget: {output:?}"
        );
        for &seq_id in &output.preempted {
            let expected = self.live.get_mut(&seq_id).expect("it is live");
            expected.num_computed = 0;
            self.num_preemptions += 1;
        }
        let mut seen = BTreeSet::new();
        for scheduled in &output.scheduled {
            let seq_id = scheduled.seq_id;
            assert!(seen.insert(seq_id), "{seq_id:?} twice in {output:?}");
            let expected = &self.live[&seq_id];
            let num_left = expected.num_tokens - expected.num_computed;
            assert!(
                (1..=num_left).contains(&scheduled.num_scheduled_tokens),
                "{seq_id:?}: {scheduled:?} of {num_left}"
            );
            assert_eq!(
                scheduled.wants_logits,
                scheduled.num_scheduled_tokens == num_left,
                "{seq_id:?}"
            );
            let sequence = self.scheduler.sequence(seq_id).expect("it is live");
            assert_eq!(sequence.state, SequenceState::Running, "{seq_id:?}");
            let last = expected.num_computed + scheduled.num_scheduled_tokens;
            assert!(
                sequence.block_table.len() * BLOCK_TOKENS >= last,
                "{seq_id:?}: blocks do not cover {last} tokens"
            );
        }
        self.check_cost(output, running_before);
        let running = self.in_state(SequenceState::Running);
        // Decode rows are never left out.
        for seq_id in running.intersection(running_before) {
            let expected = &self.live[seq_id];
            assert!(
                expected.num_tokens - expected.num_computed != 1 || seen.contains(seq_id),
                "{seq_id:?} should decode: {output:?}"
            );
        }
        // No starvation: the oldest advances in every step, so it ends, and then the next is oldest.
        if let Some(oldest) = self.live.keys().next() {
            assert!(seen.contains(oldest), "{oldest:?} stands still: {output:?}");
        }
        let waiting = self.live.keys().filter(|seq_id| !running.contains(seq_id));
        if let (Some(youngest_running), Some(oldest_waiting)) = (running.last(), waiting.min()) {
            assert!(
                youngest_running < oldest_waiting,
                "{youngest_running:?} overtook {oldest_waiting:?}"
            );
        }
    }

    /// What the entry's rows cost, counted row by row. To be asked before the step is booked.
    pub(crate) fn cost(&self, seq_id: SeqId, num_rows: usize) -> usize {
        let position = self.live[&seq_id].num_computed;
        (position..position + num_rows).map(|p| ROW + p).sum()
    }

    /// The stated bounds on what a step costs.
    fn check_cost(&self, output: &SchedulerOutput, running_before: &BTreeSet<SeqId>) {
        let num_left = |seq_id: SeqId| {
            let expected = &self.live[&seq_id];
            expected.num_tokens - expected.num_computed
        };
        let (decode, prefill): (Vec<_>, Vec<_>) = output.scheduled.iter().partition(|entry| {
            num_left(entry.seq_id) == 1 && running_before.contains(&entry.seq_id)
        });
        let total = |entries: &[&ScheduledSequence]| -> usize {
            entries
                .iter()
                .map(|entry| self.cost(entry.seq_id, entry.num_scheduled_tokens))
                .sum()
        };
        let budget = (self.config.max_num_batched_tokens * ROW).saturating_sub(total(&decode));
        let interactive = (self.config.max_num_batched_tokens / 4).max(16) * ROW;
        let is_long = |seq_id| self.cost(seq_id, num_left(seq_id)) > interactive;
        let long: Vec<_> = prefill
            .iter()
            .copied()
            .filter(|entry| is_long(entry.seq_id))
            .collect();
        let long_budget = if self.live.len() == 1 {
            budget
        } else {
            budget.min(interactive)
        };
        // The oldest prompt's one row, where it does not fit its half.
        let oldest = prefill.iter().min_by_key(|entry| entry.seq_id);
        let excess = |entries: &[&ScheduledSequence], limit: usize| match oldest {
            Some(oldest) if entries.contains(oldest) => {
                let row = self.cost(oldest.seq_id, 1);
                if row > limit.div_ceil(2) { row } else { 0 }
            }
            _ => 0,
        };
        for (which, entries, limit) in [("all", &prefill, budget), ("long", &long, long_budget)] {
            let half_of = if oldest.is_some_and(|oldest| is_long(oldest.seq_id)) {
                long_budget
            } else {
                budget
            };
            let bound = limit + excess(entries, half_of);
            let cost = total(entries);
            assert!(
                cost <= bound,
                "{which} prompts cost {cost} > {bound}: {output:?}"
            );
        }
    }

    fn check_counts(&self) {
        let live: Vec<SeqId> = self.scheduler.sequences().map(|s| s.seq_id).collect();
        assert_eq!(live, self.live.keys().copied().collect::<Vec<_>>());
        for sequence in self.scheduler.sequences() {
            let expected = &self.live[&sequence.seq_id];
            assert_eq!(
                sequence.num_computed_tokens, expected.num_computed,
                "{expected:?}"
            );
            assert_eq!(
                sequence.token_ids.len(),
                expected.num_tokens,
                "{expected:?}"
            );
        }
        assert_eq!(
            self.scheduler.num_running() + self.scheduler.num_waiting(),
            self.live.len()
        );
    }

    /// Every block is free or in exactly one block table.
    fn check_blocks(&self) {
        let mut owners: BTreeMap<BlockId, SeqId> = BTreeMap::new();
        for sequence in self.scheduler.sequences() {
            assert!(
                sequence.state == SequenceState::Running || sequence.block_table.is_empty(),
                "{:?} holds blocks while {:?}",
                sequence.seq_id,
                sequence.state
            );
            for &block in &sequence.block_table {
                assert!((block.0 as usize) < self.num_blocks, "{block:?}");
                if let Some(other) = owners.insert(block, sequence.seq_id) {
                    panic!("{block:?} of {:?} and {other:?}", sequence.seq_id);
                }
            }
        }
        let blocks = self.scheduler.blocks();
        assert_eq!(blocks.num_used(), owners.len(), "used");
        assert_eq!(blocks.num_free(), self.num_blocks - owners.len(), "free");
        for (index, &count) in (0..).zip(blocks.num_references()) {
            let is_owned = owners.contains_key(&BlockId(index));
            assert_eq!(count, u32::from(is_owned), "references of block {index}");
        }
    }

    fn in_state(&self, state: SequenceState) -> BTreeSet<SeqId> {
        self.scheduler
            .sequences()
            .filter(|sequence| sequence.state == state)
            .map(|sequence| sequence.seq_id)
            .collect()
    }

    fn run_to_the_end(&mut self) {
        // Each step advances the oldest by at least one token, recomputation of it excluded.
        let bound = self.live.len() * 2 * (MAX_PROMPT + MAX_REPLY);
        for _ in 0..bound {
            if self.live.is_empty() {
                break;
            }
            self.step();
        }
        assert!(self.live.is_empty(), "unfinished: {:?}", self.live);
        assert!(self.scheduler.schedule().scheduled.is_empty());
        assert_eq!(self.scheduler.blocks().num_used(), 0);
    }
}

const LONGEST_IN_BLOCKS: usize = (MAX_PROMPT + MAX_REPLY).div_ceil(BLOCK_TOKENS);

proptest! {
    #[test]
    fn any_operations_keep_every_rule(
        operations in prop::collection::vec(any_operation(), 1..120),
        max_num_seqs in 1_usize..10,
        spare_tokens in prop::sample::select(vec![0_usize, 1, 7, 60, 500]),
        num_blocks in LONGEST_IN_BLOCKS..4 * LONGEST_IN_BLOCKS,
    ) {
        let config = SchedulerConfig {
            max_num_seqs,
            max_num_batched_tokens: max_num_seqs + spare_tokens,
        };
        let mut checked = Checked::new(config, num_blocks);
        for operation in operations {
            match operation {
                Operation::Add { num_prompt, num_reply } => {
                    checked.add(num_prompt, num_reply);
                }
                Operation::Step => {
                    checked.step();
                }
                Operation::Cancel { nth } => checked.cancel(nth),
            }
        }
        checked.run_to_the_end();
    }
}

/// Eight growing sequences in a pool for two: preemption happens, and all end.
#[test]
fn a_pool_too_small_for_all_preempts_and_ends() {
    let config = SchedulerConfig {
        max_num_seqs: 8,
        max_num_batched_tokens: 64,
    };
    let mut checked = Checked::new(config, 2 * LONGEST_IN_BLOCKS);
    for _ in 0..8 {
        checked.add(8, MAX_REPLY);
    }
    checked.run_to_the_end();
    assert!(checked.num_preemptions > 0);
}
