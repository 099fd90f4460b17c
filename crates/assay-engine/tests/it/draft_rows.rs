//! Draft rows in the scheduler: they take what the rest of a step leaves, and leave nothing behind.

use assay_engine::block_manager::{BlockManager, PrefixCache};
use assay_engine::scheduler::{Scheduler, SchedulerConfig, SchedulerOutput};
use assay_engine::sequence::{SeqId, Sequence, SequenceState};
use assay_models::TokenId;

const BLOCK_TOKENS: usize = 4;

fn seq_id(arrival: u64) -> SeqId {
    SeqId {
        arrival,
        choice_index: 0,
    }
}

/// A scheduler whose sequences decode next: each with a prompt of `num_prompt` and one token drawn.
fn decoding(num_sequences: u64, num_prompt: u32, num_blocks: usize, budget: usize) -> Scheduler {
    decoding_at_once(1, num_sequences, num_prompt, num_blocks, budget)
}

/// The same where the model computes so many rows together.
fn decoding_at_once(
    rows_at_once: usize,
    num_sequences: u64,
    num_prompt: u32,
    num_blocks: usize,
    budget: usize,
) -> Scheduler {
    let config = SchedulerConfig {
        max_num_seqs: 8,
        max_num_batched_tokens: budget,
        prefill_chunk: None,
        logits_cost: 0,
        rows_at_once,
    };
    let mut scheduler = Scheduler::new(
        config,
        BlockManager::new(num_blocks, BLOCK_TOKENS, PrefixCache::On),
    );
    for arrival in 0..num_sequences {
        scheduler.add(Sequence::new(
            seq_id(arrival),
            (0..num_prompt).collect(),
            None,
        ));
    }
    let is_decoding = |scheduler: &Scheduler| {
        let mut sequences = scheduler.sequences();
        sequences.all(|sequence| sequence.token_ids.len() > num_prompt as usize)
    };
    while !is_decoding(&scheduler) {
        let output = scheduler.schedule();
        let drawn: Vec<(SeqId, TokenId)> = output
            .scheduled
            .iter()
            .filter(|entry| entry.wants_logits)
            .map(|entry| (entry.seq_id, 100))
            .collect();
        scheduler.apply(&output, &drawn);
    }
    scheduler
}

fn draft_lengths(output: &SchedulerOutput) -> Vec<usize> {
    let entries = output.scheduled.iter();
    entries.map(|entry| entry.draft_token_ids.len()).collect()
}

fn schedule_with_drafts(scheduler: &mut Scheduler, draft: &[TokenId]) -> SchedulerOutput {
    let mut output = scheduler.schedule();
    for index in 0..output.scheduled.len() {
        if output.scheduled[index].is_decode() {
            scheduler.add_draft(&mut output, index, draft.to_vec());
        }
    }
    output
}

#[test]
fn accepted_tokens_are_computed_and_rejected_blocks_come_back() {
    for num_accepted in 0..=7 {
        let mut scheduler = decoding(1, 9, 16, 64);
        let draft = [1, 2, 3, 4, 5, 6, 7];
        let output = schedule_with_drafts(&mut scheduler, &draft);
        assert_eq!(draft_lengths(&output), [7]);
        assert_eq!(output.num_tokens(), 8);
        // 9 + 1 + 7 tokens stand in five blocks.
        assert_eq!(scheduler.blocks().num_used(), 5);
        let mut drawn: Vec<(SeqId, TokenId)> = draft[..num_accepted]
            .iter()
            .map(|&token_id| (seq_id(0), token_id))
            .collect();
        drawn.push((seq_id(0), 99));
        scheduler.apply(&output, &drawn);
        let sequence = scheduler.sequence(seq_id(0)).expect("it is live");
        assert_eq!(sequence.token_ids.len(), 9 + 1 + num_accepted + 1);
        assert_eq!(sequence.num_computed_tokens, 9 + 1 + num_accepted);
        assert_eq!(sequence.num_uncomputed_tokens(), 1);
        let num_blocks = (9 + 1 + num_accepted + 1).div_ceil(BLOCK_TOKENS).min(5);
        assert_eq!(scheduler.blocks().num_used(), num_blocks);
        scheduler.finish(seq_id(0));
        assert_eq!(scheduler.blocks().num_used(), 0);
    }
}

#[test]
fn a_draft_that_ends_its_choice_leaves_nothing() {
    let mut scheduler = decoding(1, 9, 16, 64);
    let output = schedule_with_drafts(&mut scheduler, &[1, 2, 3]);
    // The second token was right and ended the reply.
    scheduler.apply(&output, &[(seq_id(0), 1)]);
    let sequence = scheduler.finish(seq_id(0)).expect("it was live");
    assert_eq!(sequence.state, SequenceState::Finished);
    assert_eq!(
        (sequence.token_ids.len(), sequence.num_computed_tokens),
        (11, 11)
    );
    assert_eq!(scheduler.blocks().num_used(), 0);
}

#[test]
fn drafts_take_no_block_that_another_needs() {
    let mut scheduler = decoding(4, 9, 18, 512);
    let output = schedule_with_drafts(&mut scheduler, &[1; 15]);
    assert!(output.preempted.is_empty());
    // Beside others drafts share half of the rows that the step has anyway.
    assert_eq!(draft_lengths(&output), [2, 0, 0, 0]);

    let mut scheduler = decoding(1, 9, 4, 512);
    let output = schedule_with_drafts(&mut scheduler, &[1; 15]);
    // Four blocks hold sixteen tokens, ten are known.
    assert_eq!(draft_lengths(&output), [6]);
    assert!(output.preempted.is_empty());
}

#[test]
fn drafts_take_no_row_that_another_needs() {
    // Two decode and a prompt takes the rest of the step's budget.
    let mut scheduler = decoding(2, 9, 256, 20);
    scheduler.add(Sequence::new(seq_id(9), (0..300).collect(), None));
    let before = scheduler.schedule();
    let mut with_drafts = before.clone();
    for index in 0..2 {
        scheduler.add_draft(&mut with_drafts, index, vec![1; 15]);
    }
    for (before, after) in before.scheduled.iter().zip(&with_drafts.scheduled) {
        assert_eq!(before.num_scheduled_tokens, after.num_scheduled_tokens);
    }
    assert!(with_drafts.num_tokens() <= 20, "{with_drafts:?}");

    // Alone, what the budget has rows for; they attend to ten keys and more, so twelve cost more than twelve.
    let mut scheduler = decoding(1, 9, 256, 12);
    let output = schedule_with_drafts(&mut scheduler, &[1; 15]);
    assert_eq!(draft_lengths(&output), [10]);
}

#[test]
fn drafts_fill_up_the_rows_that_are_computed_together_and_begin_no_more() {
    for (num_sequences, expected) in [
        (1, &[7][..]),
        (2, &[1, 0]),
        (4, &[2, 0, 0, 0]),
        (7, &[1, 0, 0, 0, 0, 0, 0]),
        (8, &[0; 8]),
    ] {
        let mut scheduler = decoding_at_once(8, num_sequences, 9, 256, 512);
        let output = schedule_with_drafts(&mut scheduler, &[1; 15]);
        assert_eq!(draft_lengths(&output), expected);
    }
}
