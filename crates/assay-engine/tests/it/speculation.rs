//! Drafts change time and nothing else: with them, every request gets the tokens, score bits, texts, deltas, ends
//! and counts of plain decoding. Each test also shows that drafts were accepted and rejected on the way.

use assay_constrain::{Constraint, ConstraintFactory};
use assay_engine::{
    EngineConfig, EngineHandle, EngineStats, FinishReason, LogprobsMode, LogprobsParams,
    PromptLogprobsParams, Request, RequestError, SamplingParams, Speculation,
};
use assay_models::TokenId;
use assay_testkit::scripted::{
    ScriptedModel, ScriptedVocab, StepGate, background_row, forcing_row, nan_row,
};
use proptest::prelude::*;
use serde_json::json;

use crate::collect::{ChoiceReply, Client, request, spawn, without_cached_tokens};
use crate::invariance::any_sampling;

/// Distance at which the model likes to repeat itself.
pub(crate) const PERIOD: usize = 9;
pub(crate) const BLOCK_TOKENS: usize = 4;

pub(crate) fn vocab() -> ScriptedVocab {
    ScriptedVocab::new(["ab", "é", "€", ". "])
}

/// What a model does with a history.
pub(crate) type Row = fn(&[TokenId]) -> Vec<f32>;

/// Says again what it said a period ago, but for some places where anything may come.
pub(crate) fn echoing(history: &[TokenId]) -> Vec<f32> {
    let vocab_size = vocab().vocab_size();
    match history.len().checked_sub(PERIOD) {
        Some(index) if !history.len().is_multiple_of(11) => {
            forcing_row(vocab_size, history, history[index])
        }
        _ => background_row(vocab_size, history),
    }
}

fn engine(row: Row, num_kv_blocks: usize, config: EngineConfig) -> EngineHandle {
    let model =
        ScriptedModel::new(vocab().vocab_size(), row).with_kv_pool(num_kv_blocks, BLOCK_TOKENS);
    spawn(model, vocab().token_bytes(), config)
}

fn config(speculation: Speculation) -> EngineConfig {
    EngineConfig {
        speculation,
        ..EngineConfig::default()
    }
}

/// A period and a bit more.
pub(crate) fn prompt() -> Vec<TokenId> {
    vocab().encode("one two. éab three€".as_bytes())
}

type Replies = Result<Vec<ChoiceReply>, RequestError>;

fn run_alone(row: Row, request: &Request, speculation: Speculation) -> (Replies, EngineStats) {
    let longest = request.prompt_token_ids.len() + request.max_tokens as usize;
    // Just enough for the choices: a row past the last token has no block.
    let num_kv_blocks = longest.div_ceil(BLOCK_TOKENS) * request.num_choices as usize;
    let engine = engine(row, num_kv_blocks, config(speculation));
    let client = Client::submit(&engine, request.clone()).expect("a valid request");
    let replies = client
        .collect(request.num_choices)
        .map(without_cached_tokens);
    engine.drain();
    assert!(engine.wait_stopped(std::time::Duration::from_secs(30)));
    let stats = engine.stats();
    assert_eq!(stats.num_kv_blocks_used, 0, "blocks leaked: {stats:?}");
    (replies, stats)
}

/// Runs a request without and with drafts. Both get the same; the replies, and what drafts did.
fn check_equals_plain(row: Row, request: &Request) -> (Replies, EngineStats) {
    let (plain, plain_stats) = run_alone(row, request, Speculation::Off);
    assert_eq!(plain_stats.num_drafts, 0, "{plain_stats:?}");
    let (drafted, stats) = run_alone(row, request, Speculation::Ngram);
    let bits =
        |replies: &Replies| -> Vec<_> { replies.iter().flatten().map(ChoiceReply::bits).collect() };
    assert_eq!(bits(&drafted), bits(&plain), "{request:?}");
    assert_eq!(drafted, plain, "{request:?}");
    // The same counts too, but for rows and steps.
    assert_eq!(
        EngineStats {
            num_steps: plain_stats.num_steps,
            num_computed_tokens: plain_stats.num_computed_tokens,
            num_drafts: 0,
            num_draft_tokens: 0,
            num_accepted_tokens: 0,
            num_kv_blocks_cached: plain_stats.num_kv_blocks_cached,
            num_prefix_cache_hits: plain_stats.num_prefix_cache_hits,
            num_prefix_cache_evictions: plain_stats.num_prefix_cache_evictions,
            ..stats
        },
        plain_stats
    );
    (drafted, stats)
}

pub(crate) fn assert_accepted_and_rejected(stats: &EngineStats) {
    assert!(stats.num_accepted_tokens > 0, "{stats:?}");
    assert!(
        stats.num_draft_tokens > stats.num_accepted_tokens,
        "{stats:?}"
    );
    assert!(stats.num_steps < stats.num_generation_tokens, "{stats:?}");
}

#[test]
fn every_way_to_draw_gives_what_plain_decoding_gives() {
    let settings: [fn(&mut Request); 9] = [
        |_| {},
        |request| request.sampling.temperature = 0.8,
        |request| request.sampling.temperature = 1.1,
        |request| {
            request.sampling.temperature = 1.0;
            request.sampling.top_k = Some(3);
        },
        |request| {
            request.sampling.temperature = 1.0;
            request.sampling.top_p = 0.9;
            request.sampling.min_p = 0.01;
        },
        |request| request.sampling.repetition_penalty = 1.05,
        |request| {
            request.sampling.frequency_penalty = 0.7;
            request.sampling.presence_penalty = 0.4;
        },
        |request| request.sampling.logit_bias = vec![(u32::from(b'o'), 3.0), (7, -2.0)],
        |request| {
            request.logprobs = Some(LogprobsParams {
                top_logprobs: 20,
                mode: LogprobsMode::Processed,
                include_end: true,
            });
            request.sampling.temperature = 0.7;
            request.sampling.presence_penalty = 0.2;
        },
    ];
    for set in settings {
        let mut total = EngineStats::default();
        for seed in 0..4 {
            let mut request = request(prompt(), 80);
            request.sampling.seed = seed;
            set(&mut request);
            let (replies, stats) = check_equals_plain(echoing, &request);
            assert_eq!(replies.expect("a reply")[0].entries.len(), 80);
            total.num_steps += stats.num_steps;
            total.num_generation_tokens += stats.num_generation_tokens;
            total.num_draft_tokens += stats.num_draft_tokens;
            total.num_accepted_tokens += stats.num_accepted_tokens;
        }
        assert_accepted_and_rejected(&total);
    }
}

/// Rows of a draft behind the last token are never computed, so `max_tokens` and the pool are never passed; every
/// length ends some draft early.
#[test]
fn fault_94_drafts_end_where_the_reply_must() {
    for max_tokens in 1..60 {
        let request = request(prompt(), max_tokens);
        let (replies, stats) = check_equals_plain(echoing, &request);
        let reply = &replies.expect("a reply")[0];
        assert_eq!(reply.finish, Some(FinishReason::Length));
        assert_eq!(reply.entries.len(), max_tokens as usize);
        let num_rows = request.prompt_token_ids.len() as u64 + stats.num_computed_tokens;
        assert!(num_rows > 0 && stats.num_generation_tokens == u64::from(max_tokens));
        if max_tokens > 40 {
            assert_accepted_and_rejected(&stats);
        }
    }
}

#[test]
fn fault_94_the_context_may_end_inside_what_repeats() {
    for context_length in 40..60 {
        let num_prompt = prompt().len();
        let [plain, drafted] = [Speculation::Off, Speculation::Ngram].map(|speculation| {
            let model = ScriptedModel::new(vocab().vocab_size(), echoing)
                .with_context_length(context_length);
            let engine = spawn(model, vocab().token_bytes(), config(speculation));
            let max_tokens = u32::try_from(context_length - num_prompt).expect("short");
            let client = Client::submit(&engine, request(prompt(), max_tokens)).expect("it fits");
            (client.collect(1).expect("a reply"), engine.stats())
        });
        assert_eq!(drafted.0, plain.0);
        assert_eq!(drafted.0[0].entries.len(), context_length - num_prompt);
        assert!(drafted.1.num_draft_tokens > 0, "{:?}", drafted.1);
    }
}

/// A stop string or an end token inside an accepted run: what the draft had behind it is never seen.
#[test]
fn what_stands_behind_the_end_is_dropped() {
    let mut num_stopped = 0;
    let mut total = EngineStats::default();
    let (free, _) = check_equals_plain(echoing, &request(prompt(), 90));
    let free = free.expect("a reply").remove(0);
    for index in (20..88).step_by(3) {
        // A stop that the reply comes to, wherever the drafts stand there.
        let stop: String = free.entries[index..index + 2]
            .iter()
            .map(|entry| entry.text.as_str())
            .collect();
        let mut stopping = request(prompt(), 90);
        stopping.stop = vec![stop, "never said".to_owned()];
        let mut ending = request(prompt(), 90);
        ending.end_token_ids = vec![free.entries[index].output.token_id];
        ending.logprobs = Some(LogprobsParams {
            top_logprobs: 2,
            mode: LogprobsMode::Raw,
            include_end: true,
        });
        for request in [stopping, ending] {
            if request.stop.first().is_some_and(String::is_empty) {
                continue;
            }
            let (replies, stats) = check_equals_plain(echoing, &request);
            let finish = replies.expect("a reply")[0].finish.clone();
            num_stopped += usize::from(finish != Some(FinishReason::Length));
            total.num_steps += stats.num_steps;
            total.num_generation_tokens += stats.num_generation_tokens;
            total.num_draft_tokens += stats.num_draft_tokens;
            total.num_accepted_tokens += stats.num_accepted_tokens;
        }
    }
    assert!(num_stopped > 20, "{num_stopped}");
    assert_accepted_and_rejected(&total);
}

fn list_of_words() -> Constraint {
    let vocab = vocab();
    let end = vocab.end_token_id();
    let tokens = (0..)
        .zip(vocab.token_bytes())
        .map(|(id, bytes)| (id != end).then(|| bytes.clone()));
    let schema = json!({
        "type": "array", "items": {"enum": ["abba", "abbé", "baab"]}, "minItems": 9, "maxItems": 9,
    });
    ConstraintFactory::from_token_bytes(tokens, &[end])
        .and_then(|factory| factory.compile_json_schema(&schema))
        .expect("a valid schema")
}

/// The mask of each row is that of the tokens accepted before it; a guess that it forbids is not accepted.
#[test]
fn a_constraint_is_obeyed_row_by_row() {
    let mut total = EngineStats::default();
    for (seed, temperature) in [(0, 0.0), (1, 1.0), (2, 1.0), (3, 4.0)] {
        let mut request = request(prompt(), 300);
        request.constraint = Some(list_of_words());
        request.end_token_ids = vec![vocab().end_token_id()];
        request.sampling.temperature = temperature;
        request.sampling.seed = seed;
        let background: Row = |history| background_row(vocab().vocab_size(), history);
        let (replies, stats) = check_equals_plain(background, &request);
        let text = replies.expect("a reply")[0].text();
        let words: Vec<String> = serde_json::from_str(&text).expect("what the schema says");
        assert_eq!(words.len(), 9);
        total.num_steps += stats.num_steps;
        total.num_generation_tokens += stats.num_generation_tokens;
        total.num_draft_tokens += stats.num_draft_tokens;
        total.num_accepted_tokens += stats.num_accepted_tokens;
    }
    assert_accepted_and_rejected(&total);
}

#[test]
fn choices_draft_each_for_itself() {
    let mut request = request(prompt(), 60);
    request.num_choices = 3;
    request.sampling.temperature = 1.0;
    let (replies, stats) = check_equals_plain(echoing, &request);
    let replies = replies.expect("replies");
    assert_ne!(replies[0].token_ids(), replies[1].token_ids());
    assert!(stats.num_accepted_tokens > 0, "{stats:?}");
    assert!(
        stats.num_draft_tokens > stats.num_accepted_tokens,
        "{stats:?}"
    );
}

/// A row that is no number fails the request where plain decoding comes to it, and is not looked at where a wrong
/// guess led there.
#[test]
fn a_broken_row_counts_only_where_plain_decoding_comes_to_it() {
    // The token that breaks the row behind it is what a period ago was said, but never what is said now.
    let behind_wrong_guesses: Row = |history| {
        let is_guess = history.len() > 30
            && (history.len() - 1).is_multiple_of(11)
            && history[history.len() - 1] == history[history.len() - 1 - PERIOD];
        if is_guess {
            nan_row(vocab().vocab_size())
        } else {
            echoing(history)
        }
    };
    let (replies, stats) = check_equals_plain(behind_wrong_guesses, &request(prompt(), 80));
    replies.expect("no failure");
    assert_accepted_and_rejected(&stats);

    for broken in 40..60 {
        let row: Row = match broken % 2 {
            0 => |history| {
                if history.len() == 44 {
                    nan_row(vocab().vocab_size())
                } else {
                    echoing(history)
                }
            },
            _ => |history| {
                if history.len() == 57 {
                    nan_row(vocab().vocab_size())
                } else {
                    echoing(history)
                }
            },
        };
        let (replies, stats) = check_equals_plain(row, &request(prompt(), 80));
        assert!(
            matches!(
                replies,
                Err(RequestError::NumericalError { position: 43 | 56 })
            ),
            "{replies:?}"
        );
        assert!(stats.num_accepted_tokens > 0, "{stats:?}");
    }
}

#[test]
fn fault_90_fault_97_prompt_scores_and_drafts_share_steps() {
    let mut scored = request(prompt().repeat(3), 40);
    scored.prompt_logprobs = Some(PromptLogprobsParams {
        first_position: 5,
        top_logprobs: 3,
    });
    let (replies, stats) = check_equals_plain(echoing, &scored);
    assert_eq!(
        replies.expect("a reply")[0].prompt.len(),
        3 * prompt().len() - 5
    );
    assert_accepted_and_rejected(&stats);
}

/// Requests that run together, some of which leave: the others get what plain decoding gives them alone.
fn check_together(
    requests: &[(Request, Option<usize>)],
    num_kv_blocks: usize,
    budget: usize,
) -> EngineStats {
    let gate = StepGate::default();
    let model = ScriptedModel::new(vocab().vocab_size(), echoing)
        .with_kv_pool(num_kv_blocks, BLOCK_TOKENS)
        .with_gate(&gate);
    gate.close();
    let config = EngineConfig {
        max_num_batched_tokens: budget,
        ..config(Speculation::Ngram)
    };
    let engine = spawn(model, vocab().token_bytes(), config);
    let clients: Vec<Client> = requests
        .iter()
        .map(|(request, _)| Client::submit(&engine, request.clone()).expect("a valid request"))
        .collect();
    gate.wait_held();
    gate.open();
    for (index, (client, (request, leaves_after))) in clients.into_iter().zip(requests).enumerate()
    {
        if let Some(num_events) = leaves_after {
            client.read_at_most(*num_events);
            client.leave();
            continue;
        }
        let replies = client
            .collect(request.num_choices)
            .map(without_cached_tokens);
        let (plain, _) = run_alone(echoing, request, Speculation::Off);
        assert_eq!(replies, plain, "request {index}");
    }
    engine.drain();
    assert!(engine.wait_stopped(std::time::Duration::from_secs(30)));
    let stats = engine.stats();
    assert_eq!(stats.num_kv_blocks_used, 0, "blocks leaked: {stats:?}");
    stats
}

const MAX_PROMPT: usize = 60;
const MAX_REPLY: u32 = 50;
const TINY_POOL: usize = (MAX_PROMPT + MAX_REPLY as usize).div_ceil(BLOCK_TOKENS);

fn any_visit() -> impl Strategy<Value = (Request, Option<usize>)> {
    let end_token_id = vocab().end_token_id();
    (
        prop::collection::vec(0..end_token_id, 1..MAX_PROMPT),
        1..=MAX_REPLY,
        1_u32..3,
        any_sampling(),
        prop_oneof![
            Just(Vec::new()),
            Just(vec!["é".to_owned(), "ab".to_owned()])
        ],
        prop_oneof![5 => Just(None), 1 => (0_usize..9).prop_map(Some)],
    )
        .prop_map(
            |(prompt, max_tokens, num_choices, sampling, stop, leaves_after)| {
                let request = Request {
                    num_choices,
                    sampling: SamplingParams {
                        temperature: sampling.temperature.min(1.0),
                        ..sampling
                    },
                    stop,
                    ..request(prompt, max_tokens)
                };
                (request, leaves_after)
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn together_with_drafts_each_gets_what_plain_decoding_gives_it_alone(
        visits in prop::collection::vec(any_visit(), 2..6),
        budget in prop::sample::select(vec![8, 12, 40, 512]),
        num_kv_blocks in prop::sample::select(vec![TINY_POOL, 3 * TINY_POOL, 2048]),
    ) {
        check_together(&visits, num_kv_blocks, budget);
    }
}

/// Else the property above proves nothing.
#[test]
fn drafts_in_company_and_under_preemption_really_happen() {
    let visits: Vec<(Request, Option<usize>)> = (0..4_u32)
        .map(|index| {
            let mut request = request(prompt()[index as usize % 5..].to_vec(), MAX_REPLY);
            request.sampling.temperature = 0.5;
            request.sampling.seed = u64::from(index);
            (request, (index == 2).then_some(7))
        })
        .collect();
    let roomy = check_together(&visits, 2048, 512);
    assert!(roomy.num_accepted_tokens > 0, "{roomy:?}");
    assert!(
        roomy.num_draft_tokens > roomy.num_accepted_tokens,
        "{roomy:?}"
    );
    assert_eq!(roomy.num_preemptions, 0, "{roomy:?}");
    let tight = check_together(&visits, TINY_POOL + 4, 512);
    assert!(tight.num_accepted_tokens > 0, "{tight:?}");
    assert!(tight.num_preemptions > 0, "{tight:?}");
}
