//! How long prompts, short prompts and decode rows share steps: the scheduler's stated bounds.

use assay_engine::block_manager::{BlockManager, PrefixCache};
use assay_engine::scheduler::{Scheduler, SchedulerConfig, SchedulerOutput};
use assay_engine::sequence::{SeqId, Sequence};

use crate::checked::{Checked, ROW};

/// Blocks for every prompt of these tests.
const NUM_BLOCKS: usize = 4096;

fn checked(max_num_seqs: usize, max_num_batched_tokens: usize) -> Checked {
    let config = SchedulerConfig {
        max_num_seqs,
        max_num_batched_tokens,
        prefill_chunk: None,
        logits_cost: 0,
        rows_at_once: 1,
    };
    Checked::new(config, NUM_BLOCKS, PrefixCache::On)
}

fn num_rows(output: &SchedulerOutput, seq_id: SeqId) -> usize {
    let entries = output.scheduled.iter();
    entries
        .filter(|entry| entry.seq_id == seq_id)
        .map(|entry| entry.num_scheduled_tokens)
        .sum()
}

/// A step, and what it costs in keys of attention.
fn step(checked: &mut Checked) -> (SchedulerOutput, usize) {
    let before: Vec<(SeqId, usize)> = checked
        .live
        .iter()
        .map(|(&seq_id, expected)| (seq_id, expected.num_computed))
        .collect();
    let output = checked.step();
    let cost = before
        .iter()
        .flat_map(|&(seq_id, position)| position..position + num_rows(&output, seq_id))
        .map(|position| ROW + position)
        .sum();
    (output, cost)
}

/// Steps and their cost until `seq_id` ends.
fn run_until_ended(checked: &mut Checked, seq_id: SeqId) -> (usize, usize) {
    let (mut num_steps, mut total) = (0, 0);
    while checked.live.contains_key(&seq_id) {
        let (_, cost) = step(checked);
        num_steps += 1;
        total += cost;
    }
    (num_steps, total)
}

/// A request of 4 and 4 tokens ends in 4 steps of a quarter of the budget, wherever the long prompt is.
#[test]
fn a_short_request_beside_a_long_prefill_ends_in_a_few_quarter_steps() {
    for num_steps_before in [0, 1, 8, 20, 40] {
        let mut checked = checked(8, 512);
        let long = checked.add(8_000, 4);
        for index in 0..num_steps_before {
            let (output, cost) = step(&mut checked);
            let one_row = ROW + 8_000;
            let is_full = cost > 512 * ROW - one_row && cost <= 512 * ROW;
            assert!(
                is_full || num_rows(&output, long) == 0 || output.scheduled[0].wants_logits,
                "lone step {index} costs {cost}"
            );
        }
        let position = checked.live[&long].num_computed;
        assert!(position < 8_000, "still in prefill: {position}");
        let short = checked.add(4, 4);
        let (num_steps, cost) = run_until_ended(&mut checked, short);
        assert_eq!(num_steps, 4, "long prompt at {position}");
        // 7 rows of its own: the last of them at position 6.
        let bound = 4 * 128 * ROW + 7 * (ROW + 6);
        assert!(cost <= bound, "{cost} > {bound}, long prompt at {position}");
        assert!(
            checked.live[&long].num_computed > position,
            "long prompt stands at {position}"
        );
    }
}

/// Short prompts are not held to the long ones' part, alone or beside one.
#[test]
fn short_prompts_together_fill_a_step() {
    let mut alone = checked(8, 512);
    for _ in 0..8 {
        alone.add(60, 1);
    }
    assert_eq!(step(&mut alone).0.num_tokens(), 8 * 60);
    assert!(alone.live.is_empty(), "all in one step");

    let mut beside = checked(8, 512);
    let long = beside.add(8_000, 1);
    step(&mut beside);
    for _ in 0..7 {
        beside.add(60, 1);
    }
    step(&mut beside);
    assert_eq!(beside.live.keys().collect::<Vec<_>>(), [&long]);
}

/// The stated bound in steps: the rows that fit half of the long ones' part, counted row by row, and
/// the rest at once as soon as it is short.
fn steps_behind_longer_ones(num_prompt: usize, interactive: usize) -> usize {
    let (mut position, mut num_steps) = (0, 1);
    let cost = |rows: std::ops::Range<usize>| -> usize { rows.map(|p| ROW + p).sum() };
    while cost(position..num_prompt) > interactive * ROW {
        let begin = position;
        while cost(begin..position + 1) <= interactive * ROW / 2 {
            position += 1;
        }
        num_steps += 1;
    }
    num_steps
}

#[test]
fn a_short_prompt_is_not_stuck_behind_long_ones() {
    for (num_prompt, budget, interactive, num_steps) in [
        (15, 64, 16, 1),
        (60, 512, 128, 1),
        (127 - 8, 512, 128, 1),
        (280, 512, 128, 4),
    ] {
        let mut checked = checked(8, budget);
        for _ in 0..5 {
            checked.add(2_000, 1);
        }
        checked.step();
        let shorter = checked.add(num_prompt, 1);
        let steps = run_until_ended(&mut checked, shorter).0;
        assert_eq!(steps, num_steps, "{num_prompt} tokens, budget {budget}");
        let stated = steps_behind_longer_ones(num_prompt, interactive);
        assert_eq!(steps, stated, "{num_prompt} tokens, budget {budget}");
    }
}

/// A long prompt advances by half of its part under a stream of others, long or short.
#[test]
fn a_long_prompt_is_not_starved_by_others() {
    for num_prompt in [30, 12] {
        let mut checked = checked(4, 64);
        let long = checked.add(640, 1);
        let row_at_most = ROW + 640;
        let cost = checked.cost(long, 640);
        let mut num_steps = 0;
        while checked.live.contains_key(&long) {
            checked.add(num_prompt, 1);
            checked.add(num_prompt, 1);
            checked.step();
            num_steps += 1;
        }
        let bound = cost.div_ceil(8 * ROW - row_at_most);
        assert!(
            num_steps <= bound,
            "{num_steps} steps > {bound} beside prompts of {num_prompt}"
        );
    }
}

/// Decode rows far into their contexts cost more than the whole budget: they run, and the prompt
/// still advances by a row a step.
#[test]
fn a_prompt_advances_beside_decode_rows_that_cost_the_budget() {
    let mut checked = checked(4, 4);
    for _ in 0..3 {
        checked.add(10, 2_500);
    }
    while checked
        .live
        .values()
        .any(|expected| expected.num_computed < ROW)
    {
        checked.step();
    }
    let prompt = checked.add(50, 1);
    for index in 0..50 {
        let output = checked.step();
        assert_eq!(output.num_tokens(), 4, "step {index}");
        assert_eq!(num_rows(&output, prompt), 1, "step {index}");
    }
    assert!(!checked.live.contains_key(&prompt), "through after 50 rows");
}

/// Prompts whose single rows cost more than a small budget's halves: each ends all the same.
#[test]
fn dear_rows_keep_the_bounds_and_end() {
    let mut checked = checked(2, 2);
    for _ in 0..2 {
        checked.add(5_000, 2);
    }
    for _ in 0..2 * 5_002 {
        if checked.live.is_empty() {
            break;
        }
        checked.step();
    }
    assert!(checked.live.is_empty(), "unfinished: {:?}", checked.live);
}

/// Beside decode rows, cheaper prompts and prompts that begin alike, it gets at least a row a step.
#[test]
fn the_oldest_unfinished_prompt_always_advances() {
    let common: Vec<u32> = (0..400).collect();
    for budget in [8, 64, 512] {
        let mut checked = checked(8, budget);
        checked.add(3, 900);
        checked.step();
        let oldest = checked.add_choices(common.clone(), None, 1, 1)[0];
        for index in 0.. {
            // One that begins alike and is shorter, and one that has nothing in common.
            checked.add_choices(common[..20 + index % 40].to_vec(), None, 2, 1);
            checked.add(5, 1);
            let before = checked.live[&oldest].num_computed;
            let output = checked.step();
            assert!(
                num_rows(&output, oldest) > 0,
                "step {index}, budget {budget}"
            );
            let Some(expected) = checked.live.get(&oldest) else {
                break;
            };
            assert!(expected.num_computed > before, "step {index}");
        }
    }
}

/// Choices of a request: the first computes the prompt, the others their last token; nothing else waits.
#[test]
fn choices_follow_the_first_through_the_prompt() {
    let prompt: Vec<u32> = (0..2_001).collect();
    let mut checked = checked(8, 512);
    let choices = checked.add_choices(prompt, None, 2, 4);
    let short = checked.add(10, 1);
    let (output, _) = step(&mut checked);
    assert_eq!(num_rows(&output, short), 10);
    assert!(
        !checked.live.contains_key(&short),
        "it does not wait for the choices"
    );
    // They are never behind by more than a step, and compute nothing on the way.
    while checked.cached_tokens(choices[3]) < 2_000 {
        let position = checked.live[&choices[0]].num_computed;
        let (output, _) = step(&mut checked);
        for &follower in &choices[1..] {
            let cached = checked.cached_tokens(follower);
            assert_eq!(cached, position.min(2_000), "{follower:?}");
            assert_eq!(num_rows(&output, follower), usize::from(cached == 2_000));
        }
    }
    assert_eq!(checked.happened.num_early_hits, 0);
    for &seq_id in &choices {
        run_until_ended(&mut checked, seq_id);
    }
    let num_replies = 2 - 1;
    assert_eq!(checked.happened.num_rows, 10 + 2_001 + 3 + 4 * num_replies);
}

/// Only uncomputed rows cost: a prompt that is all cached but for its end is a short one.
#[test]
fn a_cached_prompt_is_short() {
    let prompt: Vec<u32> = (0..4_000).collect();
    let mut checked = checked(8, 512);
    let first = checked.add_choices(prompt.clone(), None, 1, 1)[0];
    run_until_ended(&mut checked, first);
    for _ in 0..2 {
        checked.add(5_000, 1);
    }
    step(&mut checked);
    let again = checked.add_choices([prompt, vec![9; 20]].concat(), None, 1, 1)[0];
    let (output, _) = step(&mut checked);
    assert_eq!(num_rows(&output, again), 20);
}

/// Rows whose logits are wanted cost the head as well: a scored prompt is no larger a step than a plain one that costs
/// as much, and a plain prompt's own last row is the only one that counts so.
#[test]
fn a_scored_prompt_gets_fewer_rows_of_a_step() {
    const BUDGET: usize = 64;
    let first_rows = |scored_from: Option<usize>, logits_cost: usize| {
        let config = SchedulerConfig {
            max_num_seqs: 8,
            max_num_batched_tokens: BUDGET,
            prefill_chunk: None,
            logits_cost: logits_cost as u64,
            rows_at_once: 1,
        };
        let blocks = BlockManager::new(NUM_BLOCKS, 4, PrefixCache::On);
        let mut scheduler = Scheduler::new(config, blocks);
        let seq_id = SeqId {
            arrival: 0,
            choice_index: 0,
        };
        let sequence = Sequence::new(seq_id, (0..200).collect(), None);
        scheduler.add(sequence.with_scores_from(scored_from));
        num_rows(&scheduler.schedule(), seq_id)
    };
    // As many rows as fit when each is counted by itself.
    let fitting = |scored_from: usize, logits_cost: usize| {
        let mut left = BUDGET * ROW;
        (0..200)
            .take_while(|&position| {
                let logits = if position >= scored_from {
                    logits_cost
                } else {
                    0
                };
                let fits = ROW + position + logits <= left;
                left = left.saturating_sub(ROW + position + logits);
                fits
            })
            .count()
    };
    for logits_cost in [0, 550, 2_048, 3_430] {
        assert_eq!(first_rows(None, logits_cost), fitting(200, logits_cost));
        for scored_from in [0, 5, 40, 150] {
            let rows = first_rows(Some(scored_from), logits_cost);
            let expected = fitting(scored_from, logits_cost);
            assert_eq!(rows, expected, "from {scored_from} at {logits_cost}");
        }
    }
    assert!(first_rows(Some(0), 2_048) <= BUDGET / 2);
}
