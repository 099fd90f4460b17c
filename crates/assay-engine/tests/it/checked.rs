//! A scheduler beside its naive reference: every operation checks every rule.

use std::collections::{BTreeMap, BTreeSet};

use assay_engine::block_manager::{BlockManager, PrefixCache};
use assay_engine::scheduler::{ScheduledSequence, Scheduler, SchedulerConfig, SchedulerOutput};
use assay_engine::sequence::{SeqId, Sequence, SequenceState};
use assay_models::{BlockId, TokenId};

use crate::storage::{Storage, holders};

/// Cost of a row at position 0, in keys of attention.
pub(crate) const ROW: usize = 2048;
pub(crate) const BLOCK_TOKENS: usize = 4;
pub(crate) const MAX_PROMPT: usize = 50;
pub(crate) const MAX_REPLY: usize = 12;

/// What the reference knows of a sequence: plain counts.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    pub(crate) num_tokens: usize,
    pub(crate) num_computed: usize,
    num_reply_left: usize,
}

/// The scheduler beside its reference; every method checks.
pub(crate) struct Checked {
    pub(crate) scheduler: Scheduler,
    config: SchedulerConfig,
    num_blocks: usize,
    storage: Storage,
    pub(crate) live: BTreeMap<SeqId, Expected>,
    num_added: u64,
    pub(crate) happened: Happened,
}

/// Proof that the conditions under test came about.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Happened {
    pub(crate) num_preemptions: usize,
    /// Tokens that came from the cache when a sequence started or started again.
    pub(crate) num_early_hits: usize,
    /// Tokens that came from the cache while a sequence ran.
    pub(crate) num_late_hits: usize,
    pub(crate) num_copies: usize,
    pub(crate) num_evictions: u64,
    /// Rows computed.
    pub(crate) num_rows: usize,
}

impl Checked {
    pub(crate) fn new(
        config: SchedulerConfig,
        num_blocks: usize,
        prefix_cache: PrefixCache,
    ) -> Self {
        let blocks = BlockManager::new(num_blocks, BLOCK_TOKENS, prefix_cache);
        Self {
            scheduler: Scheduler::new(config, blocks),
            config,
            num_blocks,
            storage: Storage::new(num_blocks, BLOCK_TOKENS),
            live: BTreeMap::new(),
            num_added: 0,
            happened: Happened::default(),
        }
    }

    /// Adds a prompt that begins like no other.
    pub(crate) fn add(&mut self, num_prompt: usize, num_reply: usize) -> SeqId {
        let first = 1_000_000 + TokenId::try_from(self.num_added).expect("few sequences");
        let prompt = (0..num_prompt).map(|i| first + i as TokenId * 7).collect();
        self.add_choices(prompt, None, num_reply, 1)[0]
    }

    /// Adds a request: its choices begin with the same prompt.
    pub(crate) fn add_choices(
        &mut self,
        prompt: Vec<TokenId>,
        salt: Option<&str>,
        num_reply: usize,
        num_choices: u32,
    ) -> Vec<SeqId> {
        let arrival = self.num_added;
        self.num_added += 1;
        let seq_ids = (0..num_choices).map(|choice_index| SeqId {
            arrival,
            choice_index,
        });
        let seq_ids: Vec<SeqId> = seq_ids.collect();
        for &seq_id in &seq_ids {
            let expected = Expected {
                num_tokens: prompt.len(),
                num_computed: 0,
                num_reply_left: num_reply,
            };
            self.live.insert(seq_id, expected);
            let salt = salt.map(Into::into);
            self.scheduler
                .add(Sequence::new(seq_id, prompt.clone(), salt));
        }
        seq_ids
    }

    pub(crate) fn cached_tokens(&self, seq_id: SeqId) -> usize {
        let sequence = self.scheduler.sequence(seq_id).expect("it is live");
        sequence.num_cached_tokens
    }

    pub(crate) fn cancel(&mut self, nth: usize) {
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
        let decoding_before = self.decoding();
        let running_before = self.in_state(SequenceState::Running);
        let output = self.scheduler.schedule();
        self.book_schedule(&output, &running_before);
        self.check_output(&output, &decoding_before);
        self.storage.run(&self.scheduler, &output);
        self.check_blocks();

        let mut drawn = Vec::new();
        for scheduled in &output.scheduled {
            let expected = self.live.get_mut(&scheduled.seq_id).expect("it is live");
            expected.num_computed += scheduled.num_scheduled_tokens;
            self.happened.num_rows += scheduled.num_scheduled_tokens;
            if scheduled.wants_logits {
                expected.num_reply_left -= 1;
                if expected.num_reply_left > 0 {
                    expected.num_tokens += 1;
                    // Some replies to one prompt go the same way for a while, some do not.
                    let token_id = (scheduled.seq_id.choice_index + expected.num_tokens as u32) % 3;
                    drawn.push((scheduled.seq_id, token_id));
                }
            }
        }
        self.scheduler.apply(&output, &drawn);
        self.storage.check(&self.scheduler);
        let ended: Vec<SeqId> = self
            .live
            .iter()
            .filter(|(_, expected)| expected.num_reply_left == 0)
            .map(|(&seq_id, _)| seq_id)
            .collect();
        for seq_id in ended {
            self.finish(seq_id);
        }
        self.check_counts();
        output
    }

    /// Books preemptions and what came from the cache.
    fn book_schedule(&mut self, output: &SchedulerOutput, running_before: &BTreeSet<SeqId>) {
        for seq_id in &output.preempted {
            self.live.get_mut(seq_id).expect("it is live").num_computed = 0;
        }
        for (&seq_id, expected) in &mut self.live {
            let sequence = self.scheduler.sequence(seq_id).expect("it is live");
            let num_hit = sequence
                .num_computed_tokens
                .checked_sub(expected.num_computed)
                .expect("nothing computed is lost");
            // The last token's row gives the next token: it is never left out.
            assert!(
                num_hit == 0 || sequence.num_uncomputed_tokens() > 0,
                "{seq_id:?}"
            );
            expected.num_computed += num_hit;
            if running_before.contains(&seq_id) {
                self.happened.num_late_hits += num_hit;
            } else {
                self.happened.num_early_hits += num_hit;
            }
        }
        self.happened.num_preemptions += output.preempted.len();
        self.happened.num_copies += output.block_copies.len();
        self.happened.num_evictions = self.scheduler.blocks().num_evictions();
    }

    /// Sequences that decode in the next step, unless they are preempted.
    fn decoding(&self) -> BTreeSet<SeqId> {
        let mut running = self.in_state(SequenceState::Running);
        running.retain(|seq_id| {
            let expected = &self.live[seq_id];
            expected.num_tokens - expected.num_computed == 1
        });
        running
    }

    fn check_output(&self, output: &SchedulerOutput, decoding_before: &BTreeSet<SeqId>) {
        assert!(
            output.num_tokens() <= self.config.max_num_batched_tokens,
            "token budget: {output:?}"
        );
        assert!(
            output.scheduled.len() <= self.config.max_num_seqs
                && self.scheduler.num_running() <= self.config.max_num_seqs,
            "sequence budget: {output:?}"
        );
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
            assert!(
                self.config
                    .prefill_chunk
                    .is_none_or(|chunk| scheduled.num_scheduled_tokens <= chunk.get()),
                "{seq_id:?}: {scheduled:?} passes the chunk"
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
        self.check_cost(output, decoding_before);
        let running = self.in_state(SequenceState::Running);
        // Decode rows are never left out.
        for seq_id in running.intersection(decoding_before) {
            assert!(
                seen.contains(seq_id),
                "{seq_id:?} should decode: {output:?}"
            );
        }
        // No starvation: the oldest advances in every step, so it ends, and then the next is oldest.
        if let Some(oldest) = self.live.keys().next() {
            assert!(seen.contains(oldest), "{oldest:?} stands still: {output:?}");
        }
        // And so does the oldest unfinished prompt, whatever decodes or is cheaper.
        let mut prefilling = running.difference(decoding_before);
        if let Some(oldest) = prefilling.next() {
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
        let expected = &self.live[&seq_id];
        let position = expected.num_computed;
        let logits_cost = usize::try_from(self.config.logits_cost).expect("a small cost");
        (position..position + num_rows)
            .map(|p| {
                // The last token's logits give the next one.
                let has_logits = p + 1 == expected.num_tokens;
                ROW + p + if has_logits { logits_cost } else { 0 }
            })
            .sum()
    }

    /// The stated bounds on what a step costs.
    fn check_cost(&self, output: &SchedulerOutput, decoding_before: &BTreeSet<SeqId>) {
        let num_left = |seq_id: SeqId| {
            let expected = &self.live[&seq_id];
            expected.num_tokens - expected.num_computed
        };
        let (decode, prefill): (Vec<_>, Vec<_>) = output
            .scheduled
            .iter()
            .partition(|entry| decoding_before.contains(&entry.seq_id));
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

    /// Every block is held, cached or free, and each reference is that of a block table.
    pub(crate) fn check_blocks(&self) {
        for sequence in self.scheduler.sequences() {
            assert!(
                sequence.state == SequenceState::Running || sequence.block_table.is_empty(),
                "{:?} holds blocks while {:?}",
                sequence.seq_id,
                sequence.state
            );
        }
        let holders = holders(&self.scheduler);
        let blocks = self.scheduler.blocks();
        let (mut num_cached, mut num_free) = (0, 0);
        assert_eq!(blocks.num_references(), holders, "references");
        for (block, num_holders) in (0..).map(BlockId).zip(&holders) {
            match (*num_holders, blocks.is_in_tree(block)) {
                (0, true) => num_cached += 1,
                (0, false) => num_free += 1,
                (1.., _) => {}
            }
        }
        assert_eq!(
            blocks.num_used(),
            self.num_blocks - num_cached - num_free,
            "used"
        );
        assert_eq!(blocks.num_cached(), num_cached, "cached");
        assert_eq!(blocks.num_free(), num_free, "free");
    }

    fn in_state(&self, state: SequenceState) -> BTreeSet<SeqId> {
        self.scheduler
            .sequences()
            .filter(|sequence| sequence.state == state)
            .map(|sequence| sequence.seq_id)
            .collect()
    }

    pub(crate) fn run_to_the_end(&mut self) {
        // Each step advances the oldest by at least one token, recomputation of it excluded.
        let bound = self.live.len() * 2 * (MAX_PROMPT + MAX_REPLY) + 1;
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
