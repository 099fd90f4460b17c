//! Scores of a prompt's own tokens: of the row before each, raw, each once and in order, whatever chunks,
//! neighbours and preemptions do; and no row of logits that nobody wants.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use assay_engine::{
    EngineConfig, FinishReason, LogprobsMode, LogprobsParams, OutputEvent, PromptLogprobsParams,
    PromptToken, Request, RequestError, SamplingParams, Usage,
};
use assay_models::TokenId;
use assay_testkit::scripted::{ScriptedModel, StepGate, background_row, nan_row};
use proptest::prelude::*;

use crate::collect::{ChoiceReply, Client, reply_alone, request, spawn};
use crate::scores::reference_logprobs;

const VOCAB: usize = 120;
const BLOCK_TOKENS: usize = 4;

fn table() -> Vec<Vec<u8>> {
    vec![vec![b'x']; VOCAB]
}

fn model() -> ScriptedModel {
    ScriptedModel::new(VOCAB, |history| background_row(VOCAB, history))
}

/// A model that counts the rows it is asked for.
fn counting_model() -> (ScriptedModel, Arc<AtomicUsize>) {
    let num_rows = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&num_rows);
    let model = ScriptedModel::new(VOCAB, move |history| {
        counter.fetch_add(1, Ordering::Relaxed);
        background_row(VOCAB, history)
    });
    (model, num_rows)
}

fn prompt(num_tokens: usize) -> Vec<TokenId> {
    (0..num_tokens as u32)
        .map(|i| (i * i * 7 + i * 13 + 5) % VOCAB as u32)
        .collect()
}

/// Scores the prompt from `first_position` on, then generates `max_tokens`.
fn scoring(prompt: Vec<TokenId>, first_position: u32, max_tokens: u32) -> Request {
    Request {
        prompt_logprobs: Some(PromptLogprobsParams {
            first_position,
            top_logprobs: 3,
        }),
        ..request(prompt, max_tokens)
    }
}

fn alone(request: Request) -> ChoiceReply {
    reply_alone(model(), &table(), request).expect("finite")
}

/// What each score is by definition, from the row before its token.
fn check_against_reference(prompt: &[TokenId], first_position: u32, scored: &[PromptToken]) {
    let expected_positions: Vec<u32> = (first_position..prompt.len() as u32).collect();
    let positions: Vec<u32> = scored.iter().map(|token| token.position).collect();
    assert_eq!(positions, expected_positions);
    for token in scored {
        let position = token.position as usize;
        let row = background_row(VOCAB, &prompt[..position]);
        let logprobs = reference_logprobs(&row);
        let mut best_first: Vec<usize> = (0..VOCAB).collect();
        best_first.sort_by(|&a, &b| row[b].total_cmp(&row[a]).then(a.cmp(&b)));

        assert_eq!(token.token_id, prompt[position], "position {position}");
        let error = (token.logprobs.logprob - logprobs[token.token_id as usize]).abs();
        assert!(error < 1e-12, "position {position}: off by {error:e}");
        let rank = best_first
            .iter()
            .position(|&id| id == token.token_id as usize);
        assert_eq!(Some(token.rank as usize - 1), rank, "position {position}");
        let top: Vec<usize> = token
            .logprobs
            .top_logprobs
            .iter()
            .map(|top| top.token_id as usize)
            .collect();
        assert_eq!(top, best_first[..3], "position {position}");
        for top in &token.logprobs.top_logprobs {
            let error = (top.logprob - logprobs[top.token_id as usize]).abs();
            assert!(error < 1e-12, "position {position}: off by {error:e}");
        }
    }
}

#[test]
fn a_score_is_that_of_the_row_before_its_token() {
    for (num_tokens, first_position, max_tokens) in [(2, 1, 0), (40, 1, 0), (40, 39, 0), (40, 7, 3)]
    {
        let prompt = prompt(num_tokens);
        let reply = alone(scoring(prompt.clone(), first_position, max_tokens));
        check_against_reference(&prompt, first_position, &reply.prompt);
        assert_eq!(reply.entries.len(), max_tokens as usize);
    }
}

#[test]
fn equal_logits_rank_by_id() {
    let mut row = vec![0.0; VOCAB];
    row[7] = 2.0;
    row[9] = 2.0;
    let model = ScriptedModel::new(VOCAB, move |_| row.clone());
    let reply = reply_alone(model, &table(), scoring(vec![0, 9, 7, 0, 119], 1, 0)).expect("finite");
    let ranks: Vec<u32> = reply.prompt.iter().map(|token| token.rank).collect();
    assert_eq!(ranks, [2, 1, 3, 120]);
}

/// R4: "score only" draws nothing and reads no row of the last token.
#[test]
fn zero_tokens_score_and_generate_nothing() {
    let (model, num_rows) = counting_model();
    let engine = spawn(model, &table(), EngineConfig::default());
    let client = Client::submit(&engine, scoring(prompt(50), 1, 0)).expect("a valid request");
    let reply = client.collect(1).expect("finite").remove(0);
    assert_eq!(reply.prompt.len(), 49);
    assert_eq!(reply.entries, []);
    assert_eq!(reply.finish, Some(FinishReason::Length));
    let usage = Usage {
        prompt_tokens: 50,
        cached_tokens: 0,
        completion_tokens: 0,
        reasoning_tokens: 0,
    };
    assert_eq!(reply.usage, Some(usage));
    assert_eq!(num_rows.load(Ordering::Relaxed), 49);
    engine.drain();
    assert!(engine.wait_stopped(std::time::Duration::from_secs(30)));
    let stats = engine.stats();
    assert_eq!(stats.num_computed_tokens, 49, "{stats:?}");
    assert_eq!(stats.num_prompt_tokens, 50, "{stats:?}");
    assert_eq!(stats.num_generation_tokens, 0, "{stats:?}");
    assert_eq!(stats.num_kv_blocks_used, 0, "{stats:?}");
}

/// V4: a reply is the same with its prompt scored; the choices share one prompt and one list of scores.
#[test]
fn scoring_the_prompt_moves_no_reply() {
    let mut plain = request(prompt(30), 6);
    plain.num_choices = 3;
    plain.sampling.temperature = 1.0;
    let scored = Request {
        prompt_logprobs: scoring(Vec::new(), 1, 6).prompt_logprobs,
        ..plain.clone()
    };
    let replies = |request| {
        let (model, num_rows) = counting_model();
        let engine = spawn(model, &table(), EngineConfig::default());
        let client = Client::submit(&engine, request).expect("a valid request");
        let replies = client.collect(3).expect("finite");
        (replies, num_rows.load(Ordering::Relaxed))
    };
    let (plain, num_plain_rows) = replies(plain);
    let (mut scored, num_scored_rows) = replies(scored);
    assert_eq!(scored[0].prompt.len(), 29);
    assert_eq!(num_scored_rows, num_plain_rows + 29);
    scored[0].prompt.clear();
    assert_eq!(scored, plain);
}

/// The sampler has no part in it.
#[test]
fn sampler_settings_never_move_a_score() {
    let plain = alone(scoring(prompt(30), 1, 2));
    let mut request = scoring(prompt(30), 1, 2);
    request.sampling = SamplingParams {
        logit_bias: vec![(5, 50.0)],
        temperature: 0.3,
        top_k: Some(1),
        repetition_penalty: 2.0,
        ..SamplingParams::greedy()
    };
    request.logprobs = Some(LogprobsParams {
        top_logprobs: 0,
        mode: LogprobsMode::Processed,
        include_end: false,
    });
    assert_eq!(alone(request).prompt, plain.prompt);
}

/// V6, and only for rows that are wanted.
#[test]
fn a_row_that_is_not_finite_fails_the_request_where_it_is_wanted() {
    let bad_at_12 = || {
        ScriptedModel::new(VOCAB, |history| match history.len() {
            12 => nan_row(VOCAB),
            _ => background_row(VOCAB, history),
        })
    };
    let error = reply_alone(bad_at_12(), &table(), scoring(prompt(30), 1, 0));
    assert_eq!(
        error.err(),
        Some(RequestError::NumericalError { position: 11 })
    );
    let reply = reply_alone(bad_at_12(), &table(), scoring(prompt(30), 13, 2)).expect("not read");
    assert_eq!(reply.prompt.len(), 17);
}

#[test]
fn scores_come_as_prefill_advances_and_leaving_frees_the_place() {
    let gate = StepGate::default();
    gate.close();
    let config = EngineConfig {
        max_num_batched_tokens: 16,
        ..EngineConfig::default()
    };
    let engine = spawn(model().with_gate(&gate), &table(), config);
    let client = Client::submit(&engine, scoring(prompt(100), 1, 0)).expect("a valid request");
    gate.let_through(1);
    let OutputEvent::Prompt { tokens } = client.next_event() else {
        panic!("the first chunk's scores come first");
    };
    assert!((1..=16).contains(&tokens.len()), "{}", tokens.len());
    gate.wait_held();
    client.leave();
    gate.open();
    let next = Client::submit(&engine, scoring(prompt(9), 1, 0)).expect("a valid request");
    assert_eq!(next.collect(1).expect("finite")[0].prompt.len(), 8);
    assert_eq!(engine.stats().num_cancelled, 1);
    client.assert_silent();
}

/// A request and the client's patience in events; `None` stays.
type Visit = (Request, Option<usize>);

fn any_visit() -> impl Strategy<Value = Visit> {
    let patience = prop_oneof![4 => Just(None), 1 => (0_usize..4).prop_map(Some)];
    (2_usize..90, any::<u32>(), 0_u32..6, patience).prop_map(
        |(num_tokens, first, max_tokens, patience)| {
            let first_position = 1 + first % (num_tokens as u32 - 1);
            (
                scoring(prompt(num_tokens), first_position, max_tokens),
                patience,
            )
        },
    )
}

/// Runs all together and compares each with itself alone; the number of preemptions.
fn check_together(visits: &[Visit], num_kv_blocks: usize, max_num_batched_tokens: usize) -> u64 {
    let config = EngineConfig {
        max_num_batched_tokens,
        ..EngineConfig::default()
    };
    let model = model().with_kv_pool(num_kv_blocks, BLOCK_TOKENS);
    let engine = spawn(model, &table(), config);
    let clients: Vec<Client> = visits
        .iter()
        .map(|(request, _)| Client::submit(&engine, request.clone()).expect("a valid request"))
        .collect();
    for (client, (request, patience)) in clients.into_iter().zip(visits) {
        if let Some(num_events) = patience {
            client.read_at_most(*num_events);
            client.leave();
            continue;
        }
        let mut reply = client.collect(1).expect("finite").remove(0);
        // What came from the cache depends on who was there before.
        reply.usage.as_mut().expect("it finished").cached_tokens = 0;
        assert_eq!(reply, alone(request.clone()), "{request:?}");
    }
    engine.drain();
    assert!(engine.wait_stopped(std::time::Duration::from_secs(30)));
    let stats = engine.stats();
    assert_eq!(stats.num_kv_blocks_used, 0, "blocks leaked: {stats:?}");
    stats.num_preemptions
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn company_moves_no_score(
        visits in prop::collection::vec(any_visit(), 1..9),
        max_num_batched_tokens in prop::sample::select(vec![8, 24, 64, 512]),
        num_kv_blocks in prop::sample::select(vec![24, 48, 2048]),
    ) {
        check_together(&visits, num_kv_blocks, max_num_batched_tokens);
    }
}

/// Preempted in the middle of its prompt or of its reply, a request is computed again, and its scores come once.
#[test]
fn preemption_loses_and_repeats_no_score() {
    let visits: Vec<Visit> = (0..8)
        .map(|index| {
            let mut request = scoring(prompt(14 + index), 1, 20);
            // The prompts begin alike; shared, they would fit.
            request.cache_salt = Some(index.to_string().into());
            (request, None)
        })
        .collect();
    assert!(check_together(&visits, 40, 16) > 0, "nothing was preempted");
}
