//! Constrained requests: what is drawn obeys the mask, what is reported does not see it, neighbours
//! never notice, and a constraint that cannot be followed fails its own request alone.

use assay_constrain::{Constraint, ConstraintFactory, MatchError};
use assay_engine::{EngineConfig, FinishReason, LogprobsMode, Request, RequestError};
use assay_models::TokenId;
use assay_testkit::scripted::{ScriptedModel, ScriptedVocab, background_row};
use serde_json::{Value, json};

use crate::collect::{ChoiceReply, Client, reply_alone, request, spawn};

fn vocabulary() -> ScriptedVocab {
    ScriptedVocab::new(["{\"", "\":", "true", "ü", "\"}"])
}

fn constraint(schema: &Value) -> Constraint {
    let vocabulary = vocabulary();
    let end = vocabulary.end_token_id();
    let tokens = (0..)
        .zip(vocabulary.token_bytes())
        .map(|(id, bytes)| (id != end).then(|| bytes.clone()));
    ConstraintFactory::from_token_bytes(tokens, &[end])
        .and_then(|factory| factory.compile_json_schema(schema))
        .unwrap_or_else(|error| panic!("{schema}: {error}"))
}

/// A model that likes anything at random, the prompt included in what it depends on.
fn model() -> ScriptedModel {
    let vocab_size = vocabulary().vocab_size();
    ScriptedModel::new(vocab_size, move |history| {
        background_row(vocab_size, history)
    })
}

fn constrained(prompt: Vec<TokenId>, max_tokens: u32, schema: &Value, temperature: f64) -> Request {
    let mut request = request(prompt, max_tokens);
    request.constraint = Some(constraint(schema));
    request.end_token_ids = vec![vocabulary().end_token_id()];
    request.sampling.temperature = temperature;
    request
}

fn alone(request: Request) -> Result<ChoiceReply, RequestError> {
    reply_alone(model(), vocabulary().token_bytes(), request)
}

fn person() -> Value {
    json!({
        "type": "object",
        "properties": {"ü": {"enum": ["é", "ü", 12]}, "b": {"type": "boolean"}},
        "required": ["ü", "b"],
        "additionalProperties": false
    })
}

#[test]
fn replies_are_what_the_schema_asks_for() {
    for (seed, temperature) in [(0, 0.0), (1, 1.0), (2, 1.0), (3, 30.0)] {
        let mut request = constrained(vec![65, 66], 600, &person(), temperature);
        request.sampling.seed = seed;
        let reply = alone(request).expect("a reply");
        let end = vocabulary().end_token_id();
        assert_eq!(
            reply.finish,
            Some(FinishReason::EndToken(end)),
            "seed {seed}"
        );
        let value: Value = serde_json::from_str(&reply.text())
            .unwrap_or_else(|error| panic!("seed {seed}: {:?}: {error}", reply.text()));
        assert!(value["b"].is_boolean(), "seed {seed}: {value}");
        assert!(
            [json!("é"), json!("ü"), json!(12)].contains(&value["ü"]),
            "seed {seed}: {value}"
        );
    }
}

/// The mask is stronger than every other setting, bias included.
#[test]
fn no_setting_draws_past_the_mask() {
    let settings: [fn(&mut Request); 5] = [
        |request| request.sampling.logit_bias = vec![(u32::from(b'x'), 100.0)],
        |request| request.sampling.logit_bias = vec![(u32::from(b'n'), -1e300)],
        |request| {
            request.sampling.temperature = 1e-300;
            request.sampling.repetition_penalty = 1e300;
        },
        |request| {
            request.sampling.temperature = 2.0;
            request.sampling.top_k = Some(200);
            request.sampling.min_p = 0.01;
        },
        |request| {
            request.sampling.temperature = 2.0;
            request.sampling.top_p = 0.5;
            request.sampling.presence_penalty = -2.0;
        },
    ];
    for (index, set) in settings.into_iter().enumerate() {
        for mode in [LogprobsMode::Raw, LogprobsMode::Processed] {
            let mut request = constrained(vec![1], 20, &json!({"const": null}), 0.0);
            set(&mut request);
            if let Some(logprobs) = &mut request.logprobs {
                logprobs.mode = mode;
            }
            let reply = alone(request).expect("a reply");
            assert_eq!(reply.text(), "null", "setting {index}, {mode:?}");
        }
    }
}

/// V1, V7: the value of a forced token is the whole vocabulary's, as without a constraint.
#[test]
fn raw_scores_do_not_see_the_mask_and_processed_ones_do() {
    let reply = alone(constrained(vec![9], 20, &json!({"const": null}), 0.0)).expect("a reply");
    let vocab_size = vocabulary().vocab_size();
    let mut history = vec![9];
    for (index, entry) in reply.entries.iter().enumerate() {
        let row = background_row(vocab_size, &history);
        let sum: f64 = row.iter().map(|&logit| f64::from(logit).exp()).sum();
        let chosen = f64::from(row[entry.output.token_id as usize]) - sum.ln();
        let scores = entry.output.logprobs.as_ref().expect("scores");
        assert!(
            (scores.logprob - chosen).abs() < 1e-9,
            "token {index}: {} {chosen}",
            scores.logprob
        );
        let best = row.iter().copied().fold(f32::MIN, f32::max);
        let best = f64::from(best) - sum.ln();
        assert!(
            (scores.top_logprobs[0].logprob - best).abs() < 1e-9,
            "token {index}: top"
        );
        history.push(entry.output.token_id);
    }

    let mut request = constrained(vec![9], 20, &json!({"enum": [1, 2]}), 1.0);
    if let Some(logprobs) = &mut request.logprobs {
        logprobs.mode = LogprobsMode::Processed;
    }
    let reply = alone(request).expect("a reply");
    let scores = reply.entries[0].output.logprobs.as_ref().expect("scores");
    let mass: f64 = scores
        .top_logprobs
        .iter()
        .map(|top| top.logprob.exp())
        .sum();
    assert!(
        (mass - 1.0).abs() < 1e-12,
        "two tokens share all the mass, not {mass}"
    );
    let num_masked = scores
        .top_logprobs
        .iter()
        .filter(|top| top.logprob == f64::NEG_INFINITY)
        .count();
    assert_eq!(num_masked, 3, "five alternatives of which two may come");
}

#[test]
fn neighbours_and_choices_keep_their_own_place() {
    let plain = |prompt: TokenId| {
        let mut request = request(vec![prompt, 7], 12);
        request.sampling.temperature = 1.0;
        request
    };
    let with_choices = || {
        let mut request = constrained(vec![3, 4, 5], 200, &person(), 1.0);
        request.num_choices = 3;
        request
    };
    let expected_plain: Vec<_> = (0..4).map(|p| alone(plain(p)).expect("a reply")).collect();
    let engine = spawn(model(), vocabulary().token_bytes(), EngineConfig::default());
    let choices_alone = Client::submit(&engine, with_choices())
        .expect("valid")
        .collect(3)
        .expect("replies");

    let engine = spawn(model(), vocabulary().token_bytes(), EngineConfig::default());
    let constrained = Client::submit(&engine, with_choices()).expect("valid");
    let plains: Vec<_> = (0..4)
        .map(|prompt| Client::submit(&engine, plain(prompt)).expect("valid"))
        .collect();
    for (prompt, (client, expected)) in plains.into_iter().zip(&expected_plain).enumerate() {
        let reply = client.collect(1).expect("a reply").remove(0);
        assert_eq!(reply.bits(), expected.bits(), "neighbour {prompt}");
    }
    let together = constrained.collect(3).expect("replies");
    for (index, (reply, expected)) in together.iter().zip(&choices_alone).enumerate() {
        assert_eq!(reply.bits(), expected.bits(), "choice {index}");
        assert!(
            serde_json::from_str::<Value>(&reply.text()).is_ok(),
            "choice {index}"
        );
    }
    assert_ne!(
        together[0].text(),
        together[1].text(),
        "choices draw for themselves"
    );
}

#[test]
fn the_length_limit_cuts_and_says_so() {
    for max_tokens in 1..4 {
        let reply = alone(constrained(vec![8], max_tokens, &person(), 1.0)).expect("a reply");
        assert_eq!(
            reply.finish,
            Some(FinishReason::Length),
            "{max_tokens} tokens"
        );
        assert!(reply.text().starts_with('{'), "{:?}", reply.text());
    }
}

/// Fault 142: no token left is an error of that request, at once; its neighbour goes on.
#[test]
fn fault_142_an_empty_mask_fails_its_request_alone() {
    let tokens = [Some(b"tru".to_vec()), Some(b"x".to_vec()), None];
    let token_bytes: Vec<Vec<u8>> = tokens
        .iter()
        .map(|t| t.clone().unwrap_or_default())
        .collect();
    let stuck = ConstraintFactory::from_token_bytes(tokens, &[2])
        .and_then(|factory| factory.compile_json_schema(&json!({"const": true})))
        .expect("it can begin");
    let model = ScriptedModel::new(3, |history| background_row(3, history));
    let engine = spawn(model, &token_bytes, EngineConfig::default());
    let mut failing = request(vec![1], 10);
    failing.constraint = Some(stuck);
    let failing = Client::submit(&engine, failing).expect("valid");
    let neighbour = Client::submit(&engine, request(vec![0], 10)).expect("valid");
    assert_eq!(
        failing.collect(1).expect_err("nothing may follow `tru`"),
        RequestError::Constraint(MatchError::EmptyMask)
    );
    assert_eq!(
        neighbour.collect(1).expect("a reply")[0].token_ids().len(),
        10
    );
}
