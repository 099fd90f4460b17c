//! Trunks and what branches off behind them: one place in the batch, one share of a step, many sequences.
//!
//! A branch holds its blocks until all that follows it is computed, so whatever has to be computed again always finds
//! where to begin. Preempted, a family gives back everything and keeps what is done.

use super::branches::{Branch, Branches};
use super::{Scheduler, SchedulerOutput};
use crate::row_cost::Run;
use crate::sequence::{SeqId, Sequence, SequenceState};

/// Branches of one trunk that run in one step at most: so many rows fill the matrix products, and each may take a block
/// from the cache.
const MAX_BRANCHES: usize = 64;

impl Scheduler {
    /// Queues a trunk, which draws nothing, and the branches behind it. The dearest path must fit the pool when alone;
    /// it takes `num_path_blocks` beyond the trunk's blocks.
    ///
    /// Branch `b` appears as the sequence with the trunk's arrival and choice index `b + 1`, while it holds blocks.
    pub fn add_family(&mut self, trunk: Sequence, branches: Vec<Branch>, num_path_blocks: usize) {
        let branches = Branches::new(branches, num_path_blocks);
        self.families.insert(trunk.seq_id, branches);
        self.add(trunk);
    }

    /// Branches that hold blocks, of all families.
    pub fn num_branches(&self) -> usize {
        self.families
            .values()
            .map(|family| family.holding().count())
            .sum()
    }

    /// `[num_branches]` tokens of each branch behind `trunk` that came from the prefix cache; none without branches.
    pub fn branch_cached_tokens(&self, trunk: SeqId) -> &[usize] {
        self.families
            .get(&trunk)
            .map_or(&[], Branches::cached_tokens)
    }

    /// Makes sure that some branch behind a computed trunk can run, preempting latest arrivals for it.
    pub(super) fn fork_or_preempt(&mut self, trunk: SeqId, output: &mut SchedulerOutput) {
        loop {
            let Some(family) = self.families.get(&trunk) else {
                return;
            };
            let Some(next) = family.ready().next() else {
                return;
            };
            if family.is_forked(next) || self.fork(trunk, next, output) {
                return;
            }
            let victim = *self.running.last().expect("the trunk itself is running");
            if victim == trunk && self.fold(trunk, next) {
                continue;
            }
            assert!(
                victim > trunk || self.running.len() > 1,
                "{trunk:?} does not fit the pool alone; submit must refuse it"
            );
            self.preempt(victim);
            output.preempted.push(victim);
            if victim == trunk {
                return;
            }
        }
    }

    /// The rows that a step can compute of the branches behind `trunk`.
    pub(super) fn branch_rows(&self, trunk: SeqId) -> Option<Run> {
        let family = self.families.get(&trunk)?;
        let mut rows: Option<Run> = None;
        for index in family.ready().take(MAX_BRANCHES) {
            let branch = family.get(index);
            let num_rows = match family.is_forked(index) {
                true => self.uncomputed(branch_id(trunk, index)),
                false => branch.token_ids.len(),
            };
            let begin = self.num_tokens_before(trunk, index) + branch.token_ids.len() - num_rows;
            let end = begin + num_rows;
            let num_read = branch.read_from.map_or(0, |from| end - from.max(begin));
            let all = rows.get_or_insert(Run {
                position: begin,
                num_rows: 0,
                num_plain: 0,
            });
            // As if they all stood behind each other: their positions are near each other, and this is an estimate.
            all.position = all.position.min(begin);
            all.num_rows += num_rows;
            all.num_plain += num_rows - num_read;
        }
        rows
    }

    /// Gives `num_rows` rows of a step to the branches behind `trunk`, depth first, as far as there are blocks.
    pub(super) fn schedule_branches(
        &mut self,
        trunk: SeqId,
        num_rows: usize,
        output: &mut SchedulerOutput,
    ) {
        let Some(family) = self.families.get(&trunk) else {
            return;
        };
        let ready: Vec<usize> = family.ready().take(MAX_BRANCHES).collect();
        let mut num_left = num_rows;
        for index in ready {
            let is_forked = self.families[&trunk].is_forked(index);
            if num_left == 0 || !(is_forked || self.fork(trunk, index, output)) {
                return;
            }
            let seq_id = branch_id(trunk, index);
            let num_taken = self.uncomputed(seq_id).min(num_left);
            num_left -= num_taken;
            output.scheduled.push(self.part(seq_id, num_taken));
        }
    }

    /// Books the branches that a step has computed to their end, and gives up those that nothing needs any more.
    pub(super) fn end_computed_branches(&mut self, output: &SchedulerOutput) {
        for scheduled in &output.scheduled {
            let seq_id = scheduled.seq_id;
            let trunk = trunk_id(seq_id);
            let Some(index) = branch_index(seq_id) else {
                continue;
            };
            if self.sequences.contains_key(&seq_id) && self.uncomputed(seq_id) == 0 {
                let family = self.families.get_mut(&trunk);
                for done in family.map_or_else(Vec::new, |family| family.compute(index)) {
                    self.end_branch(trunk, done);
                }
            }
        }
    }

    /// Gives back the blocks of every branch behind `trunk`.
    pub(super) fn drop_branches(&mut self, trunk: SeqId) {
        self.drop_branches_where(trunk, |_, _| true);
    }

    /// Gives back the blocks of all branches but those before `next`; whether there were any.
    fn fold(&mut self, trunk: SeqId, next: usize) -> bool {
        self.drop_branches_where(trunk, |family, index| !family.is_before(index, next))
    }

    fn drop_branches_where(
        &mut self,
        trunk: SeqId,
        is_dropped: impl Fn(&Branches, usize) -> bool,
    ) -> bool {
        let Some(family) = self.families.get_mut(&trunk) else {
            return false;
        };
        let holding = family.holding();
        let dropped: Vec<usize> = holding.filter(|&index| is_dropped(family, index)).collect();
        for &index in &dropped {
            family.unfork(index);
        }
        // The last first: a branch's shared blocks become free leaf by leaf.
        for &index in dropped.iter().rev() {
            self.end_branch(trunk, index);
        }
        !dropped.is_empty()
    }

    fn end_branch(&mut self, trunk: SeqId, index: usize) {
        if let Some(mut sequence) = self.sequences.remove(&branch_id(trunk, index)) {
            self.blocks.free(&mut sequence);
        }
    }

    /// Gives a branch whose parent is computed its blocks; `false` if the pool has too few.
    fn fork(&mut self, trunk: SeqId, index: usize, output: &mut SchedulerOutput) -> bool {
        let family = self
            .families
            .get_mut(&trunk)
            .expect("the trunk has branches");
        let branch = family.get(index);
        let parent_id = branch
            .parent
            .map_or(trunk, |parent| branch_id(trunk, parent));
        let parent = &self.sequences[&parent_id];
        let token_ids = [parent.token_ids.as_slice(), &branch.token_ids].concat();
        let mut sequence = Sequence::new(
            branch_id(trunk, index),
            token_ids,
            parent.cache_salt.clone(),
        )
        .with_scores_from(branch.read_from);
        sequence.state = SequenceState::Running;
        sequence.wants_last_row = branch.read_from.is_some();
        sequence.is_cached = branch.is_cached;
        let Ok(copy) = self.blocks.fork(parent, &mut sequence) else {
            return false;
        };
        output.block_copies.extend(copy);
        family.fork(index, sequence.num_cached_tokens);
        self.sequences.insert(sequence.seq_id, sequence);
        true
    }

    /// Tokens of the trunk and of the branches between it and a branch whose parent holds blocks.
    fn num_tokens_before(&self, trunk: SeqId, index: usize) -> usize {
        let parent = self.families[&trunk].get(index).parent;
        let parent_id = parent.map_or(trunk, |parent| branch_id(trunk, parent));
        self.sequences[&parent_id].token_ids.len()
    }
}

/// The sequence of a branch.
fn branch_id(trunk: SeqId, index: usize) -> SeqId {
    let index = u32::try_from(index + 1).expect("a request's edges are limited");
    SeqId {
        choice_index: index,
        ..trunk
    }
}

fn trunk_id(seq_id: SeqId) -> SeqId {
    SeqId {
        choice_index: 0,
        ..seq_id
    }
}

fn branch_index(seq_id: SeqId) -> Option<usize> {
    (seq_id.choice_index as usize).checked_sub(1)
}
