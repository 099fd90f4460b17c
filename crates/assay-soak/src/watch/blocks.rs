//! Conservation: every block is free, cached or held, and held by those whose tables name it.

use std::collections::BTreeMap;

use assay_engine::scheduler::Scheduler;
use assay_engine::sequence::{SeqId, SequenceState};
use assay_models::BlockId;

use super::history::Histories;

/// What is wrong with the pool.
pub(super) fn check(scheduler: &Scheduler, histories: &Histories) -> Vec<String> {
    let blocks = scheduler.blocks();
    let block_tokens = blocks.block_size_tokens();
    let mut faults = Vec::new();
    let mut holders: BTreeMap<BlockId, Vec<(SeqId, usize)>> = BTreeMap::new();
    let mut num_live = 0;
    for sequence in scheduler.sequences() {
        num_live += 1;
        let seq_id = sequence.seq_id;
        for (index, &block) in sequence.block_table.iter().enumerate() {
            holders.entry(block).or_default().push((seq_id, index));
        }
        if sequence.state != SequenceState::Running && !sequence.block_table.is_empty() {
            faults.push(format!(
                "{seq_id:?} holds blocks while {:?}",
                sequence.state
            ));
        }
    }
    let (mut num_free, mut num_cached) = (0, 0);
    for (index, &num_references) in (0_u32..).zip(blocks.num_references()) {
        let block = BlockId(index);
        let held_by = holders.get(&block).map_or(&[][..], Vec::as_slice);
        if held_by.len() != num_references as usize {
            faults.push(format!(
                "{block:?} counts {num_references} references, tables hold {held_by:?}"
            ));
        }
        match (held_by, blocks.is_in_tree(block)) {
            ([], true) => num_cached += 1,
            ([], false) => num_free += 1,
            ([_], _) => {}
            (shared, in_tree) => {
                let ends: Vec<_> = shared
                    .iter()
                    .map(|&(seq_id, index)| {
                        histories.of_token(seq_id, (index + 1) * block_tokens - 1)
                    })
                    .collect();
                let is_same = ends.iter().all(|end| end.is_some() && *end == ends[0]);
                // A decision's branches share what they fork from, whether or not the cache keeps it.
                let arrival = shared[0].0.arrival;
                let is_family = shared.iter().all(|(seq_id, _)| seq_id.arrival == arrival);
                if !is_same || !(in_tree || is_family) {
                    faults.push(format!(
                        "{block:?} is shared by unlike sequences {shared:?}"
                    ));
                }
            }
        }
    }
    let counted = (holders.len(), num_cached, num_free);
    let told = (blocks.num_used(), blocks.num_cached(), blocks.num_free());
    if counted != told {
        faults.push(format!(
            "{counted:?} blocks are held, cached and free; the pool says {told:?}"
        ));
    }
    let num_queued = scheduler.num_running() + scheduler.num_waiting();
    if num_queued + scheduler.num_branches() != num_live {
        faults.push(format!("{num_live} sequences live, not as many are queued"));
    }
    faults
}

/// Sequences whose computed tokens do not all stand where their tables say.
pub(super) fn misplaced(scheduler: &Scheduler, histories: &Histories) -> Vec<String> {
    let block_tokens = scheduler.blocks().block_size_tokens();
    scheduler
        .sequences()
        .filter(|sequence| !histories.is_stored(sequence, block_tokens))
        .map(|sequence| format!("{:?} is not where its table says", sequence.seq_id))
        .collect()
}
