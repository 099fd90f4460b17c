//! The engine's property on the real code path: small seeded models with real kernels, real KV blocks
//! and real chunked prefill. Together, tight and threaded gives the bits of alone, roomy and single.

use std::io::Write;
use std::num::NonZeroUsize;

use assay_engine::{
    EngineConfig, LogprobsMode, LogprobsParams, PromptLogprobsParams, Request, SamplingParams,
};
use assay_formats::GgufFile;
use assay_kernels::{Compute, Isa, ThreadPool};
use assay_models::{LoadOptions, Model, Numerics};
use assay_testkit::tiny_model::{TINY_VOCAB, TinyModel};

use crate::collect::{ChoiceReply, Client, request, spawn};

const NUM_REQUESTS: u32 = 8;
const LONGEST_PROMPT: u32 = 84;

pub(crate) fn load(file: &TinyModel, num_threads: usize, num_kv_blocks: usize) -> Model {
    let mut temporary = tempfile::NamedTempFile::new().expect("a temporary file");
    temporary.write_all(&file.build()).expect("it is written");
    let gguf = GgufFile::open(temporary.path()).expect("a sound file");
    let num_threads = NonZeroUsize::new(num_threads).expect("at least one thread");
    let options = LoadOptions {
        context_length: None,
        num_kv_blocks,
        numerics: Numerics::Exact,
        compute: Compute::new(Isa::detect(), ThreadPool::new(num_threads)),
        progress: None,
        packed_cache: None,
    };
    Model::load(&gguf, options).expect("a sound model")
}

/// Eight prompts of different lengths, across block edges and the 32-token window; half are drawn at
/// random, half greedily.
pub(crate) fn requests() -> Vec<Request> {
    (0..NUM_REQUESTS)
        .map(|index| {
            let num_prompt = [1, 15, 16, 17, 40, 64, 65, LONGEST_PROMPT][index as usize];
            let prompt = (0..num_prompt)
                .map(|i| (i * 13 + index * 29 + 5) % TINY_VOCAB as u32)
                .collect();
            Request {
                sampling: SamplingParams {
                    temperature: if index % 2 == 0 { 0.0 } else { 0.9 },
                    seed: u64::from(index),
                    ..SamplingParams::greedy()
                },
                logprobs: Some(LogprobsParams {
                    top_logprobs: 20,
                    mode: LogprobsMode::Raw,
                    include_end: false,
                }),
                ..request(prompt, 12)
            }
        })
        .collect()
}

pub(crate) fn token_bytes() -> Vec<Vec<u8>> {
    (0..TINY_VOCAB)
        .map(|id| vec![b' ' + id as u8 % 64])
        .collect()
}

/// Each request on one thread, one after the other: nothing shares its steps.
fn replies_alone(file: &TinyModel) -> Vec<ChoiceReply> {
    let model = load(file, 1, 64);
    let engine = spawn(model, &token_bytes(), EngineConfig::default());
    requests()
        .into_iter()
        .map(|request| {
            let client = Client::submit(&engine, request).expect("a valid request");
            client.collect(1).expect("no failure").remove(0)
        })
        .collect()
}

fn check_together_equals_alone(file: &TinyModel) {
    let expected = replies_alone(file);
    // Blocks of 16: a pool of 16 cannot hold all eight; a budget of 24 cuts prompts across steps.
    for (num_kv_blocks, max_num_batched_tokens) in [(64, 512), (64, 24), (16, 24)] {
        let model = load(file, 2, num_kv_blocks);
        let config = EngineConfig {
            max_num_batched_tokens,
            ..EngineConfig::default()
        };
        let engine = spawn(model, &token_bytes(), config);
        let clients: Vec<Client> = requests()
            .into_iter()
            .map(|request| Client::submit(&engine, request).expect("a valid request"))
            .collect();
        for (index, (client, expected)) in clients.into_iter().zip(&expected).enumerate() {
            let reply = client.collect(1).expect("no failure").remove(0);
            let at =
                format!("request {index}, {num_kv_blocks} blocks, budget {max_num_batched_tokens}");
            assert_eq!(reply.bits(), expected.bits(), "{at}");
            assert_eq!(&reply, expected, "{at}");
        }
        engine.drain();
        assert!(engine.wait_stopped(std::time::Duration::from_secs(30)));
        let stats = engine.stats();
        assert_eq!(stats.num_kv_blocks_used, 0, "{stats:?}");
        let num_rows = stats.num_computed_tokens;
        assert!(num_rows > stats.num_steps, "rows shared steps: {stats:?}");
    }
}

/// A reply read again as part of a prompt has the bits that it was generated with, whatever the chunks.
fn check_scores_of_a_reply(file: &TinyModel) {
    let reply = replies_alone(file).pop().expect("eight replies");
    let prompt = requests().pop().expect("eight requests").prompt_token_ids;
    let first_position = prompt.len() as u32;
    let whole = [prompt, reply.token_ids()].concat();
    for (num_threads, max_num_batched_tokens) in [(1, 512), (2, 24), (3, 9)] {
        let config = EngineConfig {
            max_num_batched_tokens,
            ..EngineConfig::default()
        };
        let engine = spawn(load(file, num_threads, 64), &token_bytes(), config);
        let scoring = Request {
            prompt_logprobs: Some(PromptLogprobsParams {
                first_position,
                top_logprobs: 20,
            }),
            ..request(whole.clone(), 0)
        };
        let client = Client::submit(&engine, scoring).expect("a valid request");
        let scored = client.collect(1).expect("no failure").remove(0).prompt;
        assert_eq!(scored.len(), reply.entries.len());
        for (scored, generated) in scored.iter().zip(&reply.entries) {
            let at = format!(
                "position {}, budget {max_num_batched_tokens}",
                scored.position
            );
            assert_eq!(scored.token_id, generated.output.token_id, "{at}");
            assert_eq!(
                Some(&scored.logprobs),
                generated.output.logprobs.as_ref(),
                "{at}"
            );
        }
    }
}

#[test]
fn llama_scores_a_prompt_as_it_generated_it() {
    check_scores_of_a_reply(&TinyModel::llama());
}

#[test]
fn gemma3_scores_a_prompt_as_it_generated_it() {
    check_scores_of_a_reply(&TinyModel::gemma3());
}

#[test]
fn llama_gives_each_request_what_it_gets_alone() {
    check_together_equals_alone(&TinyModel::llama());
}

#[test]
fn gemma3_gives_each_request_what_it_gets_alone() {
    check_together_equals_alone(&TinyModel::gemma3());
}
