//! Which tokens of which sequences run in the next forward pass: a pure state machine.
//!
//! `schedule` picks, `apply` books what was computed and drawn. No device, clock, random number,
//! channel or text. What is picked never changes a result, only when it arrives.
//!
//! Cost: a row at position p attends to p keys and costs 1 + p/2048 rows, and where its logits are wanted
//! the head's share of a row more (`row_cost`). In these units a step has a budget B,
//! `max_num_batched_tokens`; S sequences at most, S ≤ B. Beside other sequences, running or waiting, long
//! prompts share no more than I = B/4, at least 16, of a step.
//! A prompt is long while its uncomputed rows cost more than I; rows from the prefix cache cost nothing.
//!
//! Policy, and the bounds it gives (D: cost of the step's decode rows, R = B − D, not below 0;
//! L = R for a prompt that is short or alone, min(R, I) for others):
//! - Decode rows first: every sequence that comes into the step with one uncomputed token runs in it.
//! - Prompts take what the cache has, when they start and at every later step, but never their last row.
//! - Admission in order of arrival, so every running sequence is older than every waiting one.
//! - Prefill takes R: the oldest prompt L/2 and at least one row, the rest the cheapest remainder first
//!   (by rows and keys alone), all long ones from one L; what they leave is the oldest's. So the oldest
//!   prompt always advances, and a prompt behind none cheaper gets the rows that fit L/2, however long the
//!   others are: a short one is through in its first step while R ≥ 2I.
//! - Where `prefill_chunk` is set, a share is cut to so many rows; what that leaves of a step stays unused.
//! - A prompt waits while one that is no dearer (by rows and keys) computes the block that comes next in
//!   both, and then has it from the cache; a short one for no long one. The oldest never waits
//!   (`shared_prompts.rs`).
//! - So a step has at most B rows and costs at most max(B, D) and one row; without short prompts
//!   beside others, D + I and one row. The one row is the oldest prompt's, if it costs above L/2.
//! - Drafts come last: rows out of what the rest of the step leaves of B, blocks out of those that are to be
//!   had, given back where the draft is rejected. Where rows are computed so many together, drafts fill up what
//!   the other rows begin: a row of the next lot would have to pay for all of it. Beside other sequences all
//!   drafts of a step together have half as many rows as the rest of it. So no draft preempts anyone or keeps anyone out, and another's
//!   token waits for no more than half a step.
//! - A decision counts as one sequence: a prompt that branches (`families.rs`). Behind its trunk, the step's share of it
//!   goes to the branches whose parents are computed, depth first, no more than 64 of them; each shares its parent's
//!   full blocks and copies the one that they part in. Its rows are never decode rows, and count as a prompt's.
//! - Out of blocks, cached ones included: the latest arrival gives its blocks back and is computed again
//!   later, as far as the cache has lost them. The oldest sequence is never preempted and can take the
//!   whole pool, so it always ends: no livelock.

mod branches;
mod budget;
mod families;
mod output;

pub use branches::Branch;
pub use output::{ScheduledSequence, SchedulerOutput};

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;

use assay_models::TokenId;

use crate::block_manager::{BlockManager, PrefixCache};
use crate::prefill::{self, UnfinishedPrompt};
use crate::row_cost::Run;
use crate::sequence::{SeqId, Sequence, SequenceState};
use crate::shared_prompts;
use branches::Branches;

/// Part of the budget that long prompts share beside other sequences: one in so many.
const INTERACTIVE_PART: usize = 4;

/// Rows of budget below which that part does not fall, so that a small budget leaves long prompts more
/// than a row or two. A step this small is still short: reading the weights once, which every step pays,
/// takes as long as 5 more rows (SmolLM2-135M, two threads: a decode step 3.9 ms, a prefill row 0.75 ms).
const INTERACTIVE_LEAST: usize = 16;

/// Beside other sequences, drafts take no more rows than one in so many of the step's other rows.
const DRAFT_PART: usize = 2;

/// Limits of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedulerConfig {
    /// Sequences in a forward pass at most, ≥ 1.
    pub max_num_seqs: usize,
    /// Token rows in a forward pass at most, ≥ `max_num_seqs`; also what the rows may cost, in rows
    /// at position 0.
    pub max_num_batched_tokens: usize,
    /// Rows of one prompt in a forward pass at most; `None` leaves it to the budget.
    pub prefill_chunk: Option<NonZeroUsize>,
    /// What a row's logits cost beside the row, in 2,048ths of a row at position 0.
    pub logits_cost: u64,
    /// Rows that a small pass computes together, ≥ 1: drafts fill up what the step's other rows begin, and no more.
    pub rows_at_once: usize,
}

/// Sequences, their queue and their blocks.
#[derive(Debug)]
pub struct Scheduler {
    config: SchedulerConfig,
    blocks: BlockManager,
    sequences: BTreeMap<SeqId, Sequence>,
    waiting: BTreeSet<SeqId>,
    running: BTreeSet<SeqId>,
    /// What follows a decision's trunk, by the trunk. The sequences of branches that hold blocks stand in `sequences`,
    /// and in neither `waiting` nor `running`: their trunk stands there for them.
    families: BTreeMap<SeqId, Branches>,
}

impl Scheduler {
    /// An empty scheduler over a pool of free blocks.
    ///
    /// # Panics
    /// If `1 ≤ max_num_seqs ≤ max_num_batched_tokens` does not hold.
    pub fn new(config: SchedulerConfig, blocks: BlockManager) -> Self {
        assert!(
            (1..=config.max_num_batched_tokens).contains(&config.max_num_seqs),
            "every running sequence needs a row: {config:?}"
        );
        Self {
            config,
            blocks,
            sequences: BTreeMap::new(),
            waiting: BTreeSet::new(),
            running: BTreeSet::new(),
            families: BTreeMap::new(),
        }
    }

    /// Queues a sequence. It must fit the pool when alone, reply included.
    pub fn add(&mut self, sequence: Sequence) {
        let seq_id = sequence.seq_id;
        assert_eq!(sequence.state, SequenceState::Waiting, "{seq_id:?}");
        let replaced = self.sequences.insert(seq_id, sequence);
        assert!(replaced.is_none(), "{seq_id:?} added twice");
        self.waiting.insert(seq_id);
    }

    /// Ends a sequence in whatever state it is, its branches with it, and frees its blocks; `None` if it ended before.
    pub fn finish(&mut self, seq_id: SeqId) -> Option<Sequence> {
        self.drop_branches(seq_id);
        self.families.remove(&seq_id);
        let mut sequence = self.sequences.remove(&seq_id)?;
        self.waiting.remove(&seq_id);
        self.running.remove(&seq_id);
        self.blocks.free(&mut sequence);
        sequence.state = SequenceState::Finished;
        Some(sequence)
    }

    /// Position of a live sequence's last token.
    ///
    /// # Panics
    /// If it has ended.
    pub fn last_position(&self, seq_id: SeqId) -> u32 {
        let num_tokens = self.sequences[&seq_id].token_ids.len();
        u32::try_from(num_tokens - 1).expect("submit bounds the context")
    }

    /// Books that a waiting sequence needs nothing computed: what it asks was known.
    ///
    /// # Panics
    /// If it has ended.
    pub fn spare(&mut self, seq_id: SeqId) {
        let sequence = self
            .sequences
            .get_mut(&seq_id)
            .expect("a waiting sequence is live");
        sequence.num_cached_tokens = sequence.num_prompt_tokens;
    }

    /// Picks the next step; empty only if nothing is queued or running.
    pub fn schedule(&mut self) -> SchedulerOutput {
        let mut output = SchedulerOutput::default();
        self.schedule_decode(&mut output);
        // Nothing is preempted behind here: whoever takes a block from the cache runs on with it.
        self.reuse_blocks(&mut output);
        if output.preempted.is_empty() {
            self.admit(&mut output);
        }
        self.schedule_prefill(&mut output);
        output
    }

    /// Adds a draft behind entry `index` of `output`, which decodes; as much of it as the step and the pool have
    /// room for.
    ///
    /// # Panics
    /// If the entry does not decode, or has a draft.
    pub fn add_draft(
        &mut self,
        output: &mut SchedulerOutput,
        index: usize,
        mut draft_token_ids: Vec<TokenId>,
    ) {
        let entry = &output.scheduled[index];
        assert!(
            entry.is_decode() && entry.draft_token_ids.is_empty(),
            "a draft follows a decode row, once: {entry:?}"
        );
        let num_tokens = self
            .sequence(output.scheduled[index].seq_id)
            .map_or(0, |sequence| sequence.token_ids.len());
        let num_rows = self.num_draft_rows_left(output, num_tokens);
        let sequence = self
            .sequences
            .get_mut(&output.scheduled[index].seq_id)
            .expect("scheduled sequences are live until the step is applied");
        let room_tokens = self.blocks.room_tokens(sequence) - num_tokens;
        draft_token_ids.truncate(num_rows.min(room_tokens));
        self.blocks
            .grow_for_draft(sequence, draft_token_ids.len())
            .expect("counted above");
        output.scheduled[index].draft_token_ids = draft_token_ids;
    }

    /// Books a step: `output` was computed, and `drawn` are the tokens that followed, in order, for sequences
    /// that go on. Drafts that were drawn just so are computed tokens now; of the others nothing stays.
    ///
    /// # Panics
    /// If tokens are drawn for a sequence that is not fully computed, or more than its rows gave.
    pub fn apply(&mut self, output: &SchedulerOutput, drawn: &[(SeqId, TokenId)]) {
        let mut drawn_by_sequence: BTreeMap<SeqId, Vec<TokenId>> = BTreeMap::new();
        for &(seq_id, token_id) in drawn {
            drawn_by_sequence.entry(seq_id).or_default().push(token_id);
        }
        for scheduled in &output.scheduled {
            let seq_id = scheduled.seq_id;
            let drawn = drawn_by_sequence.remove(&seq_id).unwrap_or_default();
            let Some(sequence) = self.sequences.get_mut(&seq_id) else {
                assert!(drawn.is_empty(), "{seq_id:?} ended and draws");
                continue;
            };
            let begin = sequence.num_computed_tokens;
            let num_accepted = scheduled.num_accepted(&drawn);
            sequence.num_computed_tokens += scheduled.num_scheduled_tokens;
            assert!(
                drawn.is_empty() || sequence.num_uncomputed_tokens() == 0,
                "{seq_id:?} drew a token before it was computed"
            );
            assert!(
                drawn.len() <= num_accepted + 1,
                "{seq_id:?} drew past its draft: {drawn:?}"
            );
            sequence.token_ids.extend(drawn);
            sequence.num_computed_tokens += num_accepted;
            sequence.scored_from = sequence
                .scored_from
                .map(|row| row.max(sequence.num_computed_tokens));
            self.blocks.cache_blocks(sequence, begin);
            // Other choices of the request follow through the prompt to its end.
            if sequence.num_computed_tokens <= sequence.num_prompt_tokens {
                self.blocks.cache_tail(sequence);
            }
            if !scheduled.draft_token_ids.is_empty() {
                self.blocks.trim(sequence);
            }
        }
        assert!(
            drawn_by_sequence.is_empty(),
            "a token is drawn only for a scheduled sequence: {drawn_by_sequence:?}"
        );
        self.end_computed_branches(output);
    }

    /// A live sequence.
    pub fn sequence(&self, seq_id: SeqId) -> Option<&Sequence> {
        self.sequences.get(&seq_id)
    }

    /// Every live sequence, in order of arrival; branches that hold blocks behind their trunk.
    pub fn sequences(&self) -> impl Iterator<Item = &Sequence> {
        self.sequences.values()
    }

    /// Sequences that hold blocks.
    pub fn num_running(&self) -> usize {
        self.running.len()
    }

    /// Sequences that hold none: not started, or preempted.
    pub fn num_waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Sequences that have never had a place.
    pub fn num_never_started(&self) -> usize {
        let waiting = self.waiting.iter().filter_map(|id| self.sequences.get(id));
        waiting
            .filter(|s| s.state == SequenceState::Waiting)
            .count()
    }

    /// The pool.
    pub fn blocks(&self) -> &BlockManager {
        &self.blocks
    }

    /// One row for each sequence with one uncomputed token, oldest first.
    fn schedule_decode(&mut self, output: &mut SchedulerOutput) {
        let oldest_first: Vec<SeqId> = self.running.iter().copied().collect();
        for seq_id in oldest_first {
            // It may have been preempted for an older one.
            if !self.running.contains(&seq_id) {
                continue;
            }
            if self.uncomputed(seq_id) == 0 {
                self.fork_or_preempt(seq_id, output);
            } else if self.uncomputed(seq_id) == 1 && self.grow_or_preempt(seq_id, output) {
                output.scheduled.push(self.part(seq_id, 1));
            }
        }
    }

    /// Covers all tokens of `seq_id` with blocks, preempting latest arrivals; `false` if the latest
    /// was `seq_id` itself.
    fn grow_or_preempt(&mut self, seq_id: SeqId, output: &mut SchedulerOutput) -> bool {
        loop {
            let sequence = self
                .sequences
                .get_mut(&seq_id)
                .expect("a running sequence is live");
            if self.blocks.grow(sequence).is_ok() {
                return true;
            }
            let victim = *self.running.last().expect("seq_id itself is running");
            assert!(
                victim > seq_id || self.running.len() > 1,
                "{seq_id:?} does not fit the pool alone; submit must refuse it"
            );
            self.preempt(victim);
            output.preempted.push(victim);
            if victim == seq_id {
                return false;
            }
        }
    }

    fn preempt(&mut self, seq_id: SeqId) {
        let sequence = self
            .sequences
            .get_mut(&seq_id)
            .expect("a running sequence is live");
        self.blocks.free(sequence);
        sequence.forget();
        sequence.state = SequenceState::Preempted;
        self.running.remove(&seq_id);
        self.waiting.insert(seq_id);
        self.drop_branches(seq_id);
    }

    /// Lets unfinished prompts take what the cache has learnt of them since they started: from the other
    /// choices of a request, or from whoever else began alike.
    fn reuse_blocks(&mut self, output: &mut SchedulerOutput) {
        for seq_id in self.prefilling(output) {
            let sequence = self
                .sequences
                .get_mut(&seq_id)
                .expect("a running sequence is live");
            if let Some(hit) = self.blocks.find(sequence) {
                let copy = self.blocks.take_hit(sequence, hit);
                let copy = copy.expect("a running sequence has blocks for all its tokens");
                output.block_copies.extend(copy);
            }
        }
    }

    /// Starts waiting sequences in order of arrival while there is a place and room for all their
    /// tokens, those that the cache spares them included. Beside others, one spare block for each running sequence stays free, so that the next
    /// few decode steps do not preempt what was just started.
    fn admit(&mut self, output: &mut SchedulerOutput) {
        while self.running.len() < self.config.max_num_seqs {
            let Some(&seq_id) = self.waiting.first() else {
                return;
            };
            let sequence = self
                .sequences
                .get_mut(&seq_id)
                .expect("a waiting sequence is live");
            let hit = self.blocks.find(sequence);
            let room = self
                .blocks
                .room_beside(sequence.token_ids.len(), hit.as_ref());
            let num_forked = self
                .families
                .get(&seq_id)
                .map_or(0, Branches::num_path_blocks);
            if room.is_none_or(|num_spare| num_spare < self.running.len() + num_forked) {
                return;
            }
            let copy = match hit {
                Some(hit) => self.blocks.take_hit(sequence, hit),
                None => self.blocks.grow(sequence).map(|()| None),
            };
            output.block_copies.extend(copy.expect("counted above"));
            sequence.state = SequenceState::Running;
            self.waiting.remove(&seq_id);
            self.running.insert(seq_id);
        }
    }

    /// Shares what decode left of the budget among unfinished prompts.
    fn schedule_prefill(&mut self, output: &mut SchedulerOutput) {
        // Decode has at most S − 1 ≤ B − 1 rows beside an unfinished prompt: one is always left.
        let shares = prefill::share(
            self.costs(),
            self.prefill_budget(output),
            self.unfinished_prompts(output),
        );
        let chunk = self
            .config
            .prefill_chunk
            .map_or(usize::MAX, NonZeroUsize::get);
        for (prompt, num_rows) in shares {
            let num_rows = num_rows.min(chunk);
            if self.uncomputed(prompt.seq_id) == 0 {
                self.schedule_branches(prompt.seq_id, num_rows, output);
            } else {
                output.scheduled.push(self.part(prompt.seq_id, num_rows));
            }
        }
    }

    /// The next `num_rows` rows of a live sequence.
    fn part(&self, seq_id: SeqId, num_rows: usize) -> ScheduledSequence {
        let sequence = self.sequences.get(&seq_id);
        let reaches_end = self.uncomputed(seq_id) == num_rows;
        ScheduledSequence {
            seq_id,
            num_scheduled_tokens: num_rows,
            num_scored_rows: sequence.map_or(0, |sequence| sequence.num_scored_rows(num_rows)),
            wants_logits: reaches_end && sequence.is_some_and(|sequence| sequence.wants_last_row),
            draft_token_ids: Vec::new(),
        }
    }

    /// Running sequences that do not decode in this step, oldest first; without those that wait for
    /// another to compute what they share.
    fn unfinished_prompts(&self, decode: &SchedulerOutput) -> Vec<UnfinishedPrompt> {
        let interactive_cost = self.interactive_cost();
        let prompts: Vec<(UnfinishedPrompt, &Sequence)> = self
            .prefilling(decode)
            .into_iter()
            .filter_map(|seq_id| self.sequences.get(&seq_id))
            .filter_map(|sequence| {
                let rows = self.rows_left(sequence)?;
                let prompt = UnfinishedPrompt {
                    seq_id: sequence.seq_id,
                    rows,
                    is_long: self.costs().of(rows) > interactive_cost,
                };
                Some((prompt, sequence))
            })
            .collect();
        match self.blocks.prefix_cache() {
            PrefixCache::On => {
                shared_prompts::without_followers(&prompts, self.blocks.block_size_tokens())
            }
            PrefixCache::Off => prompts.into_iter().map(|(prompt, _)| prompt).collect(),
        }
    }

    /// Rows that a step can compute of a sequence, or of the branches behind it; `None` for none.
    fn rows_left(&self, sequence: &Sequence) -> Option<Run> {
        let num_rows = sequence.num_uncomputed_tokens();
        if num_rows == 0 {
            return self.branch_rows(sequence.seq_id);
        }
        let num_with_logits =
            sequence.num_scored_rows(num_rows) + usize::from(sequence.wants_last_row);
        Some(Run {
            position: sequence.num_computed_tokens,
            num_rows,
            num_plain: num_rows - num_with_logits,
        })
    }

    /// Running sequences that do not decode in this step, oldest first.
    fn prefilling(&self, decode: &SchedulerOutput) -> Vec<SeqId> {
        let decoding: BTreeSet<SeqId> = decode.scheduled.iter().map(|s| s.seq_id).collect();
        self.running.difference(&decoding).copied().collect()
    }

    fn uncomputed(&self, seq_id: SeqId) -> usize {
        self.sequences
            .get(&seq_id)
            .map_or(0, Sequence::num_uncomputed_tokens)
    }
}
