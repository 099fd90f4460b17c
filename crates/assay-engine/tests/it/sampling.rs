//! The sampler against a naive one: full sorts, plain loops, the standard library's exp.

use std::num::NonZeroUsize;

use assay_engine::SamplingParams;
use assay_engine::sampler::{self, DrawKey, SeenTokens};
use assay_kernels::{Compute, Isa, ThreadPool};
use assay_models::TokenId;
use assay_testkit::scripted::background_row;
use proptest::prelude::*;

/// Every width gives the same bits, so one is enough here.
fn compute() -> Compute {
    Compute::new(Isa::detect(), ThreadPool::new(NonZeroUsize::MIN))
}

fn key(seed: u64, choice_index: u32, position: u32) -> DrawKey {
    DrawKey {
        seed,
        choice_index,
        position,
    }
}

/// Probabilities by the book, in the documented order of the stages.
fn naive_probabilities(
    row: &[f32],
    params: &SamplingParams,
    prompt: &[TokenId],
    reply: &[TokenId],
) -> Vec<f64> {
    let mut scores: Vec<f64> = row.iter().map(|&logit| f64::from(logit)).collect();
    for &(id, bias) in &params.logit_bias {
        scores[id as usize] += bias;
    }
    for (id, score) in (0..).zip(&mut scores) {
        if prompt.contains(&id) || reply.contains(&id) {
            *score = if *score > 0.0 {
                *score / params.repetition_penalty
            } else {
                *score * params.repetition_penalty
            };
        }
        let count = reply.iter().filter(|&&seen| seen == id).count() as f64;
        if count > 0.0 {
            *score -= params.presence_penalty;
            *score -= params.frequency_penalty * count;
        }
        *score /= params.temperature;
    }
    let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut weights: Vec<f64> = scores.iter().map(|score| (score - max).exp()).collect();
    let mut best_first: Vec<usize> = (0..row.len()).collect();
    best_first.sort_by(|&a, &b| weights[b].total_cmp(&weights[a]).then(a.cmp(&b)));

    let num_kept = params.top_k.map_or(row.len(), |k| k as usize);
    for &id in best_first.iter().skip(num_kept) {
        weights[id] = 0.0;
    }
    let total: f64 = weights.iter().sum();
    let mut cumulative = 0.0;
    for &id in &best_first {
        if params.top_p < 1.0 && cumulative >= params.top_p * total {
            weights[id] = 0.0;
        } else {
            cumulative += weights[id];
        }
    }
    for weight in &mut weights {
        if *weight < params.min_p {
            *weight = 0.0;
        }
    }
    let total: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / total).collect()
}

fn seen(prompt: &[TokenId], reply: &[TokenId]) -> SeenTokens {
    let mut seen = SeenTokens::of_prompt(prompt);
    for &token_id in reply {
        seen.push(token_id);
    }
    seen
}

fn check_distribution(row: &[f32], params: &SamplingParams, prompt: &[TokenId], reply: &[TokenId]) {
    let expected = naive_probabilities(row, params, prompt, reply);
    let distribution = sampler::distribution(&compute(), row, None, params, &seen(prompt, reply));
    for (id, &expected) in (0..).zip(&expected) {
        let got = distribution.logprob(id).exp();
        assert!(
            (got - expected).abs() < 1e-12,
            "token {id}: {got}, not {expected}"
        );
    }
    let top = distribution.top_logprobs(row.len());
    assert_eq!(top.len(), row.len());
    assert!(top.is_sorted_by(|a, b| {
        a.logprob > b.logprob || (a.logprob == b.logprob && a.token_id < b.token_id)
    }));
    for position in 0..20 {
        let token_id = sampler::draw(
            &compute(),
            row,
            None,
            params,
            &seen(prompt, reply),
            key(5, 0, position),
        );
        assert!(expected[token_id as usize] > 0.0, "drew {token_id}");
    }
}

proptest! {
    #[test]
    fn any_parameters_give_the_naive_distribution(
        // Eighths give many exact ties.
        eighths in prop::collection::vec(-60_i16..60, 2..80),
        temperature in 0.2..3.0,
        top_k in prop_oneof![Just(None), (1_u32..90).prop_map(Some)],
        top_p in prop_oneof![Just(1.0), 0.01..1.0],
        min_p in prop_oneof![Just(0.0), 0.0..1.0],
        penalties in (0.5..2.0, -2.0..2.0, -2.0..2.0),
        bias in prop::collection::vec((0_u32..2, -20.0..20.0), 0..3),
    ) {
        let row: Vec<f32> = eighths.iter().map(|&e| f32::from(e) / 8.0).collect();
        let params = SamplingParams {
            logit_bias: bias,
            repetition_penalty: penalties.0,
            presence_penalty: penalties.1,
            frequency_penalty: penalties.2,
            temperature,
            top_k,
            top_p,
            min_p,
            seed: 0,
        };
        check_distribution(&row, &params, &[0], &[1, 1]);
    }
}

fn warm() -> SamplingParams {
    SamplingParams {
        temperature: 1.0,
        ..SamplingParams::greedy()
    }
}

#[test]
fn draws_come_as_often_as_their_probability() {
    let row = background_row(12, &[3])
        .iter()
        .map(|l| l / 4.0)
        .collect::<Vec<_>>();
    let expected = naive_probabilities(&row, &warm(), &[], &[]);
    let distribution =
        sampler::distribution(&compute(), &row, None, &warm(), &SeenTokens::default());
    let num_draws = 40_000;
    let mut counts = [0_u32; 12];
    for position in 0..num_draws {
        counts[sampler::draw_from(&distribution, key(42, 0, position)) as usize] += 1;
    }
    for (id, (&count, &p)) in counts.iter().zip(&expected).enumerate() {
        let deviation = (f64::from(num_draws) * p * (1.0 - p)).sqrt();
        let surplus = f64::from(count) - f64::from(num_draws) * p;
        // The seed is fixed, so this either holds or does not.
        assert!(
            surplus.abs() < 4.0 * deviation,
            "token {id}: {count} draws at probability {p}"
        );
    }
}

#[test]
fn the_same_key_draws_the_same_and_another_another() {
    let row = background_row(300, &[1]);
    let draws = |seed, choice_index| -> Vec<TokenId> {
        (0..50)
            .map(|position| {
                let key = key(seed, choice_index, position);
                sampler::draw(&compute(), &row, None, &warm(), &SeenTokens::default(), key)
            })
            .collect()
    };
    assert_eq!(draws(1, 0), draws(1, 0));
    assert_ne!(draws(1, 0), draws(2, 0));
    assert_ne!(draws(1, 0), draws(1, 1));
}

fn check_support(row: &[f32], params: &SamplingParams, expected: &[TokenId]) {
    let distribution = sampler::distribution(&compute(), row, None, params, &SeenTokens::default());
    let support: Vec<TokenId> = (0..row.len() as TokenId)
        .filter(|&id| distribution.logprob(id) > f64::NEG_INFINITY)
        .collect();
    assert_eq!(support, expected, "{params:?}");
}

#[test]
fn edges_of_top_k_top_p_and_min_p() {
    // Four equal quarters: sums of them are exact.
    let row = [1.0, 1.0, 1.0, 1.0];
    let with = |top_k, top_p, min_p| SamplingParams {
        top_k,
        top_p,
        min_p,
        ..warm()
    };
    check_support(&row, &with(Some(2), 1.0, 0.0), &[0, 1]);
    check_support(&row, &with(Some(9), 1.0, 0.0), &[0, 1, 2, 3]);
    check_support(&row, &with(None, 0.5, 0.0), &[0, 1]);
    check_support(&row, &with(None, 0.5001, 0.0), &[0, 1, 2]);
    check_support(&row, &with(None, 1e-9, 0.0), &[0]);
    check_support(&row, &with(None, 1.0, 1.0), &[0, 1, 2, 3]);
    // Top-p is measured on what top-k left.
    check_support(&row, &with(Some(2), 0.5, 0.0), &[0]);
    let falling = [0.0, 2.0, 1.0, -1.0];
    check_support(&falling, &with(None, 1.0, 0.3), &[1, 2]);
    check_support(&falling, &with(None, 1.0, 1.0), &[1]);
}

#[test]
fn fault_117_greedy_takes_the_lower_id_of_a_tie_and_the_bias_counts_always() {
    let row = [0.5, 3.0, 3.0, -1.0];
    let greedy = SamplingParams::greedy();
    let unseen = SeenTokens::default();
    assert_eq!(
        sampler::draw(&compute(), &row, None, &greedy, &unseen, key(0, 0, 0)),
        1
    );
    let biased = SamplingParams {
        logit_bias: vec![(2, 0.25)],
        ..greedy
    };
    assert_eq!(
        sampler::draw(&compute(), &row, None, &biased, &unseen, key(0, 0, 0)),
        2
    );
    // The bias counts for every choice and position.
    assert_eq!(
        sampler::draw(&compute(), &row, None, &biased, &unseen, key(9, 7, 3)),
        2
    );
}

/// Dividing by such a temperature makes infinities of one or of all scores; their order must still decide.
#[test]
fn settings_that_overflow_are_greedy_not_nan() {
    let rows = [
        [0.5, 3.0, 3.0, -1.0],
        [12.0, 15.0, 13.0, -1.0],
        [-9.0, -7.0, -8.0, -7.0],
    ];
    let unseen = SeenTokens::default();
    for (row, temperature) in rows
        .iter()
        .flat_map(|row| [1e-308, 1e-320, 5e-324].map(|temperature| (row, temperature)))
    {
        let tiny = SamplingParams {
            temperature,
            ..SamplingParams::greedy()
        };
        let drawn = sampler::draw(&compute(), row, None, &tiny, &unseen, key(0, 0, 0));
        let distribution = sampler::distribution(&compute(), row, None, &tiny, &unseen);
        assert_eq!(drawn, 1, "{row:?} at {temperature:e}");
        assert_eq!(
            distribution.logprob(1).to_bits(),
            0,
            "{row:?} at {temperature:e}"
        );
    }
}

#[test]
fn penalties_by_hand() {
    let row = [2.0, -2.0, 1.0, 0.0];
    let params = SamplingParams {
        repetition_penalty: 2.0,
        presence_penalty: 0.5,
        frequency_penalty: 0.25,
        ..warm()
    };
    // 0 in the prompt alone; 1 twice in the reply; 2 once in both; 3 never.
    let scores = [1.0, -4.0 - 0.5 - 0.5, 0.5 - 0.5 - 0.25, 0.0];
    let seen = seen(&[0, 2], &[1, 2, 1]);
    let distribution = sampler::distribution(&compute(), &row, None, &params, &seen);
    for (id, score) in (0..).zip(scores) {
        let difference = distribution.logprob(id) - distribution.logprob(3);
        assert!(
            (difference - score).abs() < 1e-12,
            "token {id}: {difference}"
        );
    }
}

/// Weights in every band of top-p's partial sort, and below the exponential's cut-off.
#[test]
fn top_p_needs_no_full_sort_to_be_exact() {
    let row: Vec<f32> = (0..4000)
        .map(|id| -((id * 7919 % 4000) as f32) / 5.0)
        .collect();
    for top_p in [0.1, 0.5, 0.9, 0.99, 0.9999, 0.999_999_9, 1.0 - 1e-15] {
        let params = SamplingParams { top_p, ..warm() };
        check_distribution(&row, &params, &[], &[]);
    }
    let flat = background_row(4000, &[8])
        .iter()
        .map(|l| l / 2.0)
        .collect::<Vec<_>>();
    for top_p in [0.1, 0.9, 0.999_999] {
        let params = SamplingParams { top_p, ..warm() };
        check_distribution(&flat, &params, &[], &[]);
    }
}
