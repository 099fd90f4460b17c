//! Log-probabilities at the engine's door: whole vocabulary, raw, exact, the same bits twice.

use assay_engine::{LogprobsMode, LogprobsParams, Request, RequestError, TokenLogprobs};
use assay_models::TokenId;
use assay_testkit::scripted::{ScriptedModel, background_row};

use crate::collect::{reply_alone, request};

const PROMPT: [TokenId; 3] = [1, 2, 3];

fn logprobs(top_logprobs: u32, mode: LogprobsMode) -> Option<LogprobsParams> {
    Some(LogprobsParams {
        top_logprobs,
        mode,
        include_end: false,
    })
}

fn raw(top_logprobs: u32) -> Option<LogprobsParams> {
    logprobs(top_logprobs, LogprobsMode::Raw)
}

/// The first token and its scores when every row is `row`.
fn first_draw(row: Vec<f32>, request: Request) -> Result<(TokenId, TokenLogprobs), RequestError> {
    let table = vec![vec![b'x']; row.len()];
    let model = ScriptedModel::new(row.len(), move |_| row.clone());
    let reply = reply_alone(model, &table, request)?;
    let output = reply.entries[0].output.clone();
    Ok((output.token_id, output.logprobs.expect("asked for")))
}

fn asking(logprobs: Option<LogprobsParams>) -> Request {
    Request {
        logprobs,
        ..request(PROMPT.to_vec(), 1)
    }
}

/// Log-softmax with the standard library and compensated summation: independent of ours.
pub(crate) fn reference_logprobs(row: &[f32]) -> Vec<f64> {
    let max = row
        .iter()
        .fold(f64::NEG_INFINITY, |m, &l| m.max(f64::from(l)));
    let (mut sum, mut compensation) = (0.0_f64, 0.0_f64);
    for &logit in row {
        let term = (f64::from(logit) - max).exp() - compensation;
        let next = sum + term;
        compensation = (next - sum) - term;
        sum = next;
    }
    row.iter()
        .map(|&logit| f64::from(logit) - max - sum.ln())
        .collect()
}

/// V3: `k` past the vocabulary lists all of it; V1: the whole sums to one.
#[test]
fn fault_1_fault_25_a_list_of_the_whole_vocabulary_sums_to_one() {
    let row = background_row(13, &PROMPT);
    let (_, scores) = first_draw(row, asking(raw(20))).expect("finite");
    assert_eq!(scores.top_logprobs.len(), 13);
    let mut ids: Vec<TokenId> = scores.top_logprobs.iter().map(|t| t.token_id).collect();
    assert!(
        scores
            .top_logprobs
            .is_sorted_by(|a, b| a.logprob >= b.logprob)
    );
    ids.sort_unstable();
    assert_eq!(ids, (0..13).collect::<Vec<_>>(), "each id once");
    let sum: f64 = scores.top_logprobs.iter().map(|t| t.logprob.exp()).sum();
    assert!((sum - 1.0).abs() < 1e-12, "sum {sum}");
}

/// V5, over a vocabulary of a real model's size.
#[test]
fn values_agree_with_an_independent_reference() {
    let row = background_row(49_152, &PROMPT);
    let expected = reference_logprobs(&row);
    let (token_id, scores) = first_draw(row, asking(raw(20))).expect("finite");
    assert_eq!(scores.top_logprobs.len(), 20);
    let chosen = [(token_id, scores.logprob)];
    let listed = scores.top_logprobs.iter().map(|t| (t.token_id, t.logprob));
    for (id, logprob) in chosen.into_iter().chain(listed) {
        let error = (logprob - expected[id as usize]).abs();
        assert!(error < 1e-12, "token {id}: {logprob}, off by {error:e}");
    }
    let best = expected.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    assert!((scores.top_logprobs[0].logprob - best).abs() < 1e-12);
}

/// V3: ties by lower id, in the list and in the greedy draw.
#[test]
fn equal_logits_are_listed_and_drawn_by_id() {
    let mut row = vec![0.0; 30];
    row[7] = 2.0;
    row[4] = 2.0;
    row[29] = 2.0;
    let (token_id, scores) = first_draw(row, asking(raw(6))).expect("finite");
    let ids: Vec<TokenId> = scores.top_logprobs.iter().map(|t| t.token_id).collect();
    assert_eq!(ids, [4, 7, 29, 0, 1, 2]);
    assert_eq!(token_id, 4);
}

/// V1, V2: no sampler setting moves a reported value; V3: nor does ranking below k.
#[test]
fn fault_7_fault_26_fault_30_fault_33_fault_34_sampler_settings_never_move_a_raw_value() {
    let row = background_row(200, &PROMPT);
    let expected = reference_logprobs(&row);
    let (greedy, plain) = first_draw(row.clone(), asking(raw(5))).expect("finite");
    assert!(plain.logprob < 0.0, "greedy is not certainty");

    let mut forced = asking(raw(5));
    let worst = (0..200)
        .min_by(|&a, &b| row[a as usize].total_cmp(&row[b as usize]))
        .expect("not empty");
    forced.sampling.logit_bias = vec![(worst, 100.0), (greedy, -100.0)];
    forced.sampling.temperature = 0.7;
    forced.sampling.top_k = Some(3);
    forced.sampling.top_p = 0.5;
    forced.sampling.min_p = 0.1;
    forced.sampling.repetition_penalty = 1.3;
    let (token_id, scores) = first_draw(row, forced).expect("finite");
    assert_eq!(token_id, worst);
    let error = (scores.logprob - expected[worst as usize]).abs();
    assert!(error < 1e-12, "{} off by {error:e}", scores.logprob);
    assert_eq!(scores.top_logprobs, plain.top_logprobs);
}

/// V3: the chosen value and the same token's value in the list are the same bits.
#[test]
fn fault_21_the_chosen_value_has_the_bits_of_the_list() {
    let row = background_row(500, &PROMPT);
    let (token_id, scores) = first_draw(row, asking(raw(1))).expect("finite");
    assert_eq!(scores.top_logprobs.len(), 1);
    assert_eq!(scores.top_logprobs[0].token_id, token_id);
    assert_eq!(
        scores.top_logprobs[0].logprob.to_bits(),
        scores.logprob.to_bits()
    );
}

/// R1 and V4: none asked lists none; scores on or off, the tokens are the same.
#[test]
fn asking_for_scores_changes_no_token() {
    let vocab_size = 300;
    let table = vec![vec![b'x']; vocab_size];
    let tokens = |logprobs| {
        let mut request = asking(logprobs);
        request.max_tokens = 40;
        request.sampling.temperature = 0.9;
        request.sampling.seed = 11;
        let model = ScriptedModel::new(vocab_size, move |h| background_row(vocab_size, h));
        let reply = reply_alone(model, &table, request).expect("finite");
        (reply.token_ids(), reply.finish, reply.usage)
    };
    let without = tokens(None);
    assert_eq!(without, tokens(raw(0)));
    assert_eq!(without, tokens(raw(20)));
    assert_eq!(without, tokens(logprobs(20, LogprobsMode::Processed)));
}

#[test]
fn processed_values_are_those_of_the_distribution_drawn_from() {
    let row = background_row(50, &PROMPT);
    let mut request = asking(logprobs(20, LogprobsMode::Processed));
    request.sampling.temperature = 0.5;
    request.sampling.top_k = Some(4);
    let (token_id, scores) = first_draw(row.clone(), request).expect("finite");

    let mut by_logit: Vec<TokenId> = (0..50).collect();
    by_logit.sort_by(|&a, &b| row[b as usize].total_cmp(&row[a as usize]));
    let kept = &by_logit[..4];
    assert!(kept.contains(&token_id));
    let halved: Vec<f32> = kept.iter().map(|&id| row[id as usize] / 0.5).collect();
    for (top, (&id, expected)) in scores
        .top_logprobs
        .iter()
        .zip(kept.iter().zip(reference_logprobs(&halved)))
    {
        assert_eq!(top.token_id, id);
        assert!((top.logprob - expected).abs() < 1e-12, "token {id}");
    }
    assert_eq!(scores.top_logprobs.len(), 20);
    assert!(
        scores.top_logprobs[4..]
            .iter()
            .all(|top| top.logprob == f64::NEG_INFINITY),
        "what cannot be drawn has no mass"
    );
}

#[test]
fn processed_greedy_is_certain() {
    let row = background_row(50, &PROMPT);
    let (token_id, scores) =
        first_draw(row, asking(logprobs(2, LogprobsMode::Processed))).expect("finite");
    assert_eq!(scores.logprob.to_bits(), 0.0_f64.to_bits());
    assert_eq!(scores.top_logprobs[0].token_id, token_id);
    assert_eq!(scores.top_logprobs[1].logprob, f64::NEG_INFINITY);
}

/// V6: with scores or without, greedy or not.
#[test]
fn fault_111_fault_113_a_row_that_is_not_finite_fails_the_request_and_names_the_position() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for logprobs in [None, raw(3), logprobs(3, LogprobsMode::Processed)] {
            for temperature in [0.0, 1.0] {
                let mut row = background_row(70, &PROMPT);
                row[69] = bad;
                let mut request = asking(logprobs);
                request.sampling.temperature = temperature;
                let error = first_draw(row, request).expect_err("not finite");
                let expected = RequestError::NumericalError { position: 2 };
                assert_eq!(error, expected, "{bad} {logprobs:?} {temperature}");
            }
        }
    }
}
