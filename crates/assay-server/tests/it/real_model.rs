//! The same promises on a real model: eight different requests at once give what each gives alone, to the
//! bit, also after a restart. Reads the file that `cargo xtask fixtures` fetches, and fails where it is absent.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use assay_engine::{Engine, EngineConfig, PrefixCache, TokenBytes};
use assay_formats::GgufFile;
use assay_kernels::{Compute, Isa, ThreadPool};
use assay_models::{LoadOptions, Model, Numerics};
use assay_server::{AppState, ServerConfig};
use assay_testkit::scripted::StepGate;
use assay_tokenizer::{ChatTemplate, TemplateTokens, Tokenizer};
use serde_json::{Value, json};

use crate::world::{World, config, with};

fn model_path() -> PathBuf {
    let base = std::env::var_os("XDG_CACHE_HOME")
        .filter(|base| !base.is_empty())
        .map(PathBuf::from);
    let base = base.or_else(|| std::env::home_dir().map(|home| home.join(".cache")));
    let path = base
        .expect("a home directory")
        .join("assay/models/SmolLM2-135M-Instruct.Q4_1.gguf");
    assert!(
        path.exists(),
        "{} is missing: run `cargo xtask fixtures`",
        path.display()
    );
    path
}

/// A server on the real model, loaded anew.
pub(crate) fn start() -> World {
    start_with(EngineConfig::default())
}

fn start_with(engine_config: EngineConfig) -> World {
    let file = GgufFile::open(&model_path()).expect("a readable file");
    let tokenizer = Tokenizer::from_metadata(file.metadata()).expect("a known tokenizer");
    let source = tokenizer.chat_template_source().expect("a chat model");
    let template =
        ChatTemplate::new(source, TemplateTokens::of(&tokenizer)).expect("a valid template");
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let options = LoadOptions {
        context_length: Some(2_048),
        num_kv_blocks: 1_024,
        numerics: Numerics::Exact,
        compute: Compute::new(Isa::detect(), ThreadPool::new(threads)),
        progress: None,
        packed_cache: None,
    };
    let model = Model::load(&file, options).expect("a known model");
    let ids = 0..u32::try_from(tokenizer.vocab_size()).expect("small");
    let token_bytes: TokenBytes = ids
        .map(|id| tokenizer.token_bytes(id).expect("in the vocabulary"))
        .collect();
    let engine =
        Engine::spawn(Box::new(model), Arc::new(token_bytes), engine_config).expect("started");
    let config = ServerConfig {
        model_id: "smollm2-135m-instruct".to_owned(),
        ..config()
    };
    let app = AppState::new(engine.clone(), Arc::new(tokenizer), Some(template), config);
    World {
        app,
        engine,
        gate: StepGate::default(),
    }
}

/// Eight requests that differ in prompt, length, sampler, scores and stops.
fn requests() -> Vec<Value> {
    let ask = |content: &str, more: Value| {
        let body = json!({
            "messages": [{"role": "user", "content": content}],
            "logprobs": true, "top_logprobs": 20, "logprobs_end": true, "return_token_ids": true,
            "temperature": 0, "seed": 1, "max_tokens": 24,
        });
        with(body, more)
    };
    let long = "The quick brown fox jumps over the lazy dog. ".repeat(40);
    vec![
        ask("What is the capital of France?", json!({})),
        ask(
            "Name three primary colours.",
            json!({"temperature": 1, "seed": 11}),
        ),
        ask(
            "日本の首都はどこですか？ 🙂",
            json!({"temperature": 0.7, "top_p": 0.9, "seed": 12}),
        ),
        ask(&format!("Summarise: {long}"), json!({"top_logprobs": 3})),
        ask(
            "Write a Python function that adds two numbers.",
            json!({"stop": ["return", "\n\n"]}),
        ),
        ask(
            "Count from one to ten.",
            json!({"repetition_penalty": 1.2, "presence_penalty": 0.5}),
        ),
        ask(
            "Say hi.",
            json!({"max_tokens": 3, "n": 2, "temperature": 1.3, "min_p": 0.05, "seed": 13}),
        ),
        ask(
            "What is 2 + 2?",
            json!({"logit_bias": {"36": -5}, "logprobs_mode": "processed", "temperature": 1}),
        ),
    ]
}

fn choices(reply: &Value) -> String {
    // Numbers are written so that they read back to the same bits, so equal texts are equal bits.
    reply["choices"].to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v4_r6_fault_105_eight_at_once_are_each_as_alone_and_a_restart_moves_nothing() {
    let requests = requests();
    let world = start();
    let mut alone = Vec::new();
    for request in &requests {
        alone.push(world.reply(request).await);
    }
    let together =
        futures_util::future::join_all(requests.iter().map(|request| world.reply(request))).await;
    assert!(world.engine.stats().num_finished_length > 0);
    let again = start();
    let restarted =
        futures_util::future::join_all(requests.iter().rev().map(|request| again.reply(request)))
            .await;
    for (index, alone) in alone.iter().enumerate() {
        let request = &requests[index];
        let content = alone["choices"][0]["message"]["content"]
            .as_str()
            .expect("text");
        assert!(!content.is_empty(), "{request}");
        assert_eq!(
            choices(&together[index]),
            choices(alone),
            "at once: {request}"
        );
        assert_eq!(
            choices(&restarted[requests.len() - 1 - index]),
            choices(alone),
            "restarted: {request}"
        );
    }
    let distinct: std::collections::BTreeSet<_> = alone.iter().map(choices).collect();
    assert_eq!(distinct.len(), requests.len(), "eight different replies");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o3_s1_streams_of_the_real_model_add_up() {
    let world = start();
    for request in requests().into_iter().take(3) {
        let whole = crate::stream::check_streams_alike(&world, &request).await;
        let choice = &whole["choices"][0];
        let entries = choice["logprobs"]["content"].as_array().expect("entries");
        let spelled: String = entries
            .iter()
            .map(|entry| entry["token"].as_str().expect("text"))
            .collect();
        assert_eq!(
            spelled,
            choice["message"]["content"].as_str().expect("text")
        );
        assert!(
            entries
                .iter()
                .all(|entry| entry["top_logprobs"].as_array().map(Vec::len) == Some(20))
        );
    }
}

/// A one-message request whose prompt is as many tokens long as asked.
async fn sized(world: &World, num_prompt_tokens: u64) -> Value {
    let body = |words: usize| {
        json!({
            "messages": [{"role": "user", "content": format!("Yes or no?{}", " yes".repeat(words))}],
            "logprobs": true, "top_logprobs": 20, "temperature": 0, "max_tokens": 1,
        })
    };
    let empty = world.reply(&body(0)).await["usage"]["prompt_tokens"]
        .as_u64()
        .expect("a count");
    let words = usize::try_from(num_prompt_tokens - empty).expect("small");
    let reply = world.reply(&body(words)).await;
    assert_eq!(
        reply["usage"]["prompt_tokens"], num_prompt_tokens,
        "each word is one token"
    );
    body(words)
}

/// Eight equal requests at once, before and after a restart: sixteen times the same bits.
async fn check_sixteen_alike(world: &World, num_prompt_tokens: u64) {
    let body = sized(world, num_prompt_tokens).await;
    let again = start();
    let mut seen = std::collections::BTreeSet::new();
    for world in [world, &again] {
        let replies = futures_util::future::join_all((0..8).map(|_| world.reply(&body))).await;
        seen.extend(replies.iter().map(choices));
    }
    assert_eq!(seen.len(), 1, "{num_prompt_tokens} tokens: {seen:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn section_6_116_scored_requests_then_16_alike_of_92_tokens() {
    let world = start();
    for number in 0..116 {
        let body = json!({
            "messages": [{"role": "user", "content": format!("{number}?")}],
            "logprobs": 5, "max_tokens": 1, "seed": number,
        });
        let reply = world.reply(&body).await;
        let choice = &reply["choices"][0];
        let entries = choice["logprobs"]["content"].as_array().expect("entries");
        assert!(
            entries.len() == 1 || choice["message"]["content"] == "",
            "{reply}"
        );
    }
    check_sixteen_alike(&world, 92).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn section_6_16_alike_of_775_tokens() {
    check_sixteen_alike(&start(), 775).await;
}

/// Prompts that each go one token further than the one before, so that the shared part ends at every
/// place of a block; then each again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v4_fault_199_fault_206_fault_207_cached_prefixes_move_no_bit() {
    let cold = start_with(EngineConfig {
        prefix_cache: PrefixCache::Off,
        ..EngineConfig::default()
    });
    let warm = start();
    let cached = |reply: &Value| {
        let details = &reply["usage"]["prompt_tokens_details"];
        details["cached_tokens"].as_u64().expect("a count")
    };
    let mut ends = std::collections::BTreeSet::new();
    for num_words in 0..18 {
        let content = format!("Is it so?{}", " yes".repeat(num_words));
        let body = json!({
            "messages": [{"role": "user", "content": content}],
            "logprobs": true, "top_logprobs": 20, "max_tokens": 3, "temperature": 0.9, "seed": 5,
            "n": 2,
        });
        let expected = cold.reply(&body).await;
        assert_eq!(cached(&expected), 0);
        let first = warm.reply(&body).await;
        assert_eq!(choices(&first), choices(&expected), "{num_words} words");
        if num_words > 0 {
            assert!(cached(&first) > 16, "{num_words} words: {}", cached(&first));
            ends.insert(cached(&first) % 16);
        }
        let second = warm.reply(&body).await;
        assert_eq!(choices(&second), choices(&expected), "{num_words} words");
        let num_prompt = second["usage"]["prompt_tokens"].as_u64().expect("a count");
        assert_eq!(cached(&second), num_prompt - 1);
    }
    assert_eq!(ends.len(), 16, "every place of a block: {ends:?}");
}

/// Prompts of different lengths in one request, alone, from the cache and as a chat's: the same bits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r10_r12_v4_fault_81_scored_prompts_are_the_same_bits_whichever_way_they_come() {
    let world = start();
    let chat = json!({
        "messages": [{"role": "user", "content": "What is the capital of France?"}],
        "prompt_logprobs": 3, "return_token_ids": true, "max_tokens": 1, "temperature": 0,
    });
    let chat = world.reply(&chat).await;
    let chat_ids = chat["choices"][0]["prompt_token_ids"].clone();
    let texts = [
        "Paris",
        "The quick brown fox",
        "日本の首都は東京です。🙂",
        "a b c d e f g",
    ];
    let mut prompts = vec![chat_ids.clone()];
    for text in texts {
        let answer = world.post_to("/tokenize", &json!({"prompt": text})).await;
        prompts.push(answer.json()["tokens"].clone());
    }
    let ask = |prompt: Value| {
        let more = json!({"echo": true, "logprobs": 3, "max_tokens": 1});
        with(crate::completions::complete_prompt(&prompt), more)
    };
    let cold = start();
    let together = crate::completions::check_completion(&cold, &ask(json!(prompts))).await;
    for (index, prompt) in prompts.iter().enumerate() {
        for _ in ["cold", "from the cache"] {
            let alone = crate::completions::check_completion(&world, &ask(prompt.clone())).await;
            let mut own = alone["choices"][0].clone();
            own["index"] = json!(index);
            assert_eq!(own.to_string(), together["choices"][index].to_string());
        }
    }
    let echoed = &together["choices"][0]["logprobs"]["token_logprobs"];
    let scored = chat["prompt_logprobs"].as_array().expect("scores");
    assert_eq!(scored.len(), chat_ids.as_array().map_or(0, Vec::len));
    for (position, scores) in scored.iter().enumerate().skip(1) {
        let own = &scores[chat_ids[position].to_string()]["logprob"];
        assert_eq!(own.to_string(), echoed[position].to_string());
    }
}

/// The same decisions in every dialect, beside echoes; SmolLM2 ends a turn with either of two tokens.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn decisions_have_the_bits_of_their_paths() {
    let world = start();
    let question = crate::decisions::CHOICE_QUESTION;
    crate::decisions::check_same_bits(&world, question, &[0, 2]).await;
    let numbers =
        json!({"type": "integer", "minimum": 0, "maximum": 99, "description": "How many?"});
    let body =
        json!({"state": "Eleven birds and one cat.", "schema": numbers, "diagnostics": true});
    let reply = crate::decisions::decide(&world, crate::decisions::DECIDE, &body).await;
    let field = &reply["fields"][0];
    let distribution = field["distribution"].as_array().expect("a list");
    let sum: f64 = distribution
        .iter()
        .filter_map(|pair| pair["probability"].as_f64())
        .sum();
    assert!(
        distribution.len() == 100 && (sum - 1.0).abs() < 1e-9,
        "{sum}"
    );
    assert!(
        field["label_mass"]
            .as_f64()
            .is_some_and(|mass| mass > 0.0 && mass < 1.0)
    );
}
