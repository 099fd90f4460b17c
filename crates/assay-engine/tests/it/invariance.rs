//! The engine's property: whatever runs together, each request gets exactly the tokens and the
//! log-probability bits that it gets alone.
//!
//! The scripted rows hash the whole history as read back through the block tables, so one wrong slot
//! anywhere changes everything that follows.

use assay_engine::{EngineConfig, LogprobsMode, LogprobsParams, Request, SamplingParams};
use assay_testkit::scripted::{ScriptedModel, ScriptedVocab, StepGate, background_row};
use proptest::prelude::*;

use crate::collect::{ChoiceReply, Client, request, spawn};

const BLOCK_TOKENS: usize = 4;
const MAX_PROMPT: usize = 90;
const MAX_REPLY: u32 = 24;

fn vocab() -> ScriptedVocab {
    ScriptedVocab::new(["ab", "é", "€", ". "])
}

fn model(num_kv_blocks: usize) -> ScriptedModel {
    let vocab_size = vocab().vocab_size();
    ScriptedModel::new(vocab_size, move |history| {
        background_row(vocab_size, history)
    })
    .with_kv_pool(num_kv_blocks, BLOCK_TOKENS)
}

pub(crate) fn any_sampling() -> impl Strategy<Value = SamplingParams> {
    let nucleus = (
        prop_oneof![Just(0.0), 0.3..2.0],
        prop_oneof![Just(None), (1_u32..40).prop_map(Some)],
        prop_oneof![Just(1.0), 0.2..1.0],
        prop_oneof![Just(0.0), 0.0..0.2],
    );
    let penalties = prop_oneof![Just((1.0, 0.0, 0.0)), (0.8..1.5, -1.0..1.0, -1.0..1.0)];
    (nucleus, penalties, any::<u64>()).prop_map(
        |((temperature, top_k, top_p, min_p), (repetition, presence, frequency), seed)| {
            SamplingParams {
                temperature,
                top_k,
                top_p,
                min_p,
                repetition_penalty: repetition,
                presence_penalty: presence,
                frequency_penalty: frequency,
                seed,
                ..SamplingParams::greedy()
            }
        },
    )
}

fn any_request() -> impl Strategy<Value = Request> {
    let vocab = vocab();
    let end_token_id = vocab.end_token_id();
    (
        prop::collection::vec(0..end_token_id, 1..MAX_PROMPT),
        1..=MAX_REPLY,
        1_u32..3,
        any_sampling(),
        prop_oneof![Just(None), (0_u32..=20).prop_map(Some)],
        any::<bool>(),
        prop_oneof![
            Just(Vec::new()),
            Just(vec!["é".to_owned(), "ab".to_owned()])
        ],
    )
        .prop_map(
            move |(prompt, max_tokens, num_choices, sampling, top_logprobs, is_raw, stop)| {
                let mode = if is_raw {
                    LogprobsMode::Raw
                } else {
                    LogprobsMode::Processed
                };
                Request {
                    num_choices,
                    sampling,
                    logprobs: top_logprobs.map(|top_logprobs| LogprobsParams {
                        top_logprobs,
                        mode,
                        include_end: true,
                    }),
                    stop,
                    end_token_ids: vec![end_token_id],
                    ..request(prompt, max_tokens)
                }
            },
        )
}

/// A request, and how many events its client waits for before it leaves.
fn any_visit() -> impl Strategy<Value = (Request, Option<usize>)> {
    (
        any_request(),
        prop_oneof![4 => Just(None), 1 => (0_usize..4).prop_map(Some)],
    )
}

/// What happened besides the replies: proof that the conditions under test came about.
#[derive(Debug, Default)]
struct Conditions {
    max_batch: usize,
    num_preemptions: u64,
}

fn replies_alone(request: &Request) -> Vec<ChoiceReply> {
    let engine = spawn(model(2048), vocab().token_bytes(), EngineConfig::default());
    Client::submit(&engine, request.clone())
        .expect("a valid request")
        .collect(request.num_choices)
        .expect("no failure")
}

fn check_together(
    visits: &[(Request, Option<usize>)],
    num_kv_blocks: usize,
    config: EngineConfig,
) -> Conditions {
    let gate = StepGate::default();
    let model = model(num_kv_blocks).with_gate(&gate);
    let batch_sizes = model.batch_sizes();
    // All arrive while the first step is held, so they really run together.
    gate.close();
    let engine = spawn(model, vocab().token_bytes(), config);
    let clients: Vec<Client> = visits
        .iter()
        .map(|(request, _)| Client::submit(&engine, request.clone()).expect("a valid request"))
        .collect();
    gate.wait_held();
    gate.open();

    for (index, (client, (request, leaves_after))) in clients.into_iter().zip(visits).enumerate() {
        if let Some(num_events) = leaves_after {
            client.read_at_most(*num_events);
            client.leave();
            continue;
        }
        let replies = client.collect(request.num_choices).expect("no failure");
        for (choice, (got, alone)) in replies.iter().zip(replies_alone(request)).enumerate() {
            assert_eq!(
                got.bits(),
                alone.bits(),
                "request {index} choice {choice}: bits"
            );
            assert_eq!(
                got.entries, alone.entries,
                "request {index} choice {choice}"
            );
            assert_eq!(got.finish, alone.finish, "request {index} choice {choice}");
            assert_eq!(got.end, alone.end, "request {index} choice {choice}");
            let usage = |reply: &ChoiceReply| {
                let usage = reply.usage.expect("it finished");
                // What came from the cache depends on who was there before.
                (usage.prompt_tokens, usage.completion_tokens)
            };
            assert_eq!(usage(got), usage(&alone), "request {index} choice {choice}");
            assert_eq!(got.deltas, alone.deltas, "request {index} choice {choice}");
        }
    }
    engine.drain();
    assert!(engine.wait_stopped(std::time::Duration::from_secs(30)));
    let stats = engine.stats();
    assert_eq!(stats.num_kv_blocks_used, 0, "blocks leaked: {stats:?}");
    assert_eq!((stats.num_running, stats.num_waiting), (0, 0), "{stats:?}");
    let max_batch = *batch_sizes
        .lock()
        .expect("never poisoned")
        .iter()
        .max()
        .expect("it ran");
    Conditions {
        max_batch,
        num_preemptions: stats.num_preemptions,
    }
}

fn config(max_num_seqs: usize, max_num_batched_tokens: usize) -> EngineConfig {
    EngineConfig {
        max_num_seqs,
        max_num_batched_tokens,
        ..EngineConfig::default()
    }
}

/// Just enough for the longest request alone.
const TINY_POOL: usize = (MAX_PROMPT + MAX_REPLY as usize).div_ceil(BLOCK_TOKENS);

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn eight_together_get_what_each_gets_alone(
        visits in prop::collection::vec(any_visit(), 8),
        max_num_batched_tokens in prop::sample::select(vec![16, 64, 512]),
        num_kv_blocks in prop::sample::select(vec![TINY_POOL, 2 * TINY_POOL, 2048]),
    ) {
        check_together(&visits, num_kv_blocks, config(8, max_num_batched_tokens));
    }

    #[test]
    fn thirty_two_together_get_what_each_gets_alone(
        visits in prop::collection::vec(any_visit(), 32),
        max_num_batched_tokens in prop::sample::select(vec![32, 64, 512]),
        num_kv_blocks in prop::sample::select(vec![TINY_POOL, 4 * TINY_POOL, 2048]),
    ) {
        check_together(&visits, num_kv_blocks, config(32, max_num_batched_tokens));
    }
}

/// A fixed mix in which the conditions must come about, else the properties above prove nothing.
#[test]
fn full_batches_and_preemption_really_happen() {
    let visits: Vec<(Request, Option<usize>)> = (0..8_u32)
        .map(|index| {
            let prompt = (0..12 + index).map(|i| i * 7 + index).collect();
            let mut request = request(prompt, MAX_REPLY);
            request.sampling.temperature = 0.8;
            request.sampling.seed = u64::from(index);
            (request, None)
        })
        .collect();
    let roomy = check_together(&visits, 2048, config(8, 512));
    assert_eq!(roomy.max_batch, 8, "{roomy:?}");
    assert_eq!(roomy.num_preemptions, 0, "{roomy:?}");

    let tight = check_together(&visits, 40, config(8, 16));
    assert!(tight.max_batch > 1, "{tight:?}");
    assert!(tight.num_preemptions > 0, "{tight:?}");
}
