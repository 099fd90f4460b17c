//! The prefix cache as clients see it: counts that tell of it, bits that do not, salts that keep it apart.

use assay_engine::{EngineConfig, PrefixCache};
use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::world::{Setup, World, ask, ask_message, with};

fn scored(text: &str, more: Value) -> Value {
    let scores = json!({"logprobs": true, "top_logprobs": 20, "logprobs_end": true});
    with(with(ask(text), scores), more)
}

fn cached_tokens(reply: &Value) -> u64 {
    let details = &reply["usage"]["prompt_tokens_details"];
    details["cached_tokens"].as_u64().expect("a count")
}

fn prompt_tokens(reply: &Value) -> u64 {
    reply["usage"]["prompt_tokens"].as_u64().expect("a count")
}

fn uncached() -> World {
    let engine = EngineConfig {
        prefix_cache: PrefixCache::Off,
        ..EngineConfig::default()
    };
    Setup {
        engine,
        ..Setup::default()
    }
    .build()
}

#[tokio::test]
async fn v4_fault_206_fault_209_the_second_identical_request_is_cached_and_the_same() {
    let world = World::new();
    let body = scored("the same bits every time", json!({}));
    let first = world.reply(&body).await;
    assert_eq!(cached_tokens(&first), 0);
    let usage = json!({"stream_options": {"include_usage": true}});
    for reply in [
        world.reply(&body).await,
        world.streamed(&with(body.clone(), usage)).await,
    ] {
        assert_eq!(reply["choices"], first["choices"]);
        // All but the last token, whose row is wanted.
        assert_eq!(cached_tokens(&reply), prompt_tokens(&first) - 1);
        for count in ["prompt_tokens", "completion_tokens", "total_tokens"] {
            assert_eq!(reply["usage"][count], first["usage"][count], "{count}");
        }
    }
}

#[tokio::test]
async fn requests_share_a_prefix_and_nothing_behind_it() {
    let world = World::new();
    let prompts = [
        "a long way together, then left",
        "a long way together, then on",
    ];
    for (index, content) in prompts.into_iter().enumerate() {
        let body = with(
            ask_message(content),
            json!({"max_tokens": 9, "logprobs": true}),
        );
        let reply = world.reply(&body).await;
        let cold = World::new().reply(&body).await;
        assert_eq!(reply["choices"], cold["choices"], "{content}");
        assert_eq!(cached_tokens(&cold), 0);
        let cached = cached_tokens(&reply);
        assert_eq!(cached > 20, index > 0, "{cached}");
        assert!(cached < prompt_tokens(&reply) - 1, "{cached}");
    }
}

#[tokio::test]
async fn salts_keep_requests_apart() {
    let world = World::new();
    let mut first_choices = None;
    for salt in [
        json!({}),
        json!({"cache_salt": "a"}),
        json!({"cache_salt": "b"}),
        json!({"cache_salt": "ключ"}),
    ] {
        let body = scored("whose is it", salt.clone());
        let cold = world.reply(&body).await;
        assert_eq!(cached_tokens(&cold), 0, "{salt}");
        let warm = world.reply(&body).await;
        assert_eq!(cached_tokens(&warm), prompt_tokens(&cold) - 1, "{salt}");
        let choices = first_choices.get_or_insert_with(|| cold["choices"].clone());
        assert_eq!(&cold["choices"], choices, "{salt}");
        assert_eq!(&warm["choices"], choices, "{salt}");
    }
    let null = world
        .reply(&scored("whose is it", json!({"cache_salt": null})))
        .await;
    assert!(cached_tokens(&null) > 0, "null is no salt");
}

#[tokio::test]
async fn bad_salts_are_refused() {
    let world = World::new();
    for salt in [json!(""), json!(7), json!(["a"]), json!("x".repeat(257))] {
        world
            .check_refused(&with(ask("hi"), json!({"cache_salt": salt})), "cache_salt")
            .await;
    }
    world
        .reply(&with(ask("hi"), json!({"cache_salt": "x".repeat(256)})))
        .await;
}

#[tokio::test]
async fn fault_218_without_the_cache_everything_is_the_same_but_the_count() {
    let body = scored("with or without", json!({"n": 2, "temperature": 1}));
    let cached = World::new();
    let expected = cached.reply(&body).await;
    let world = uncached();
    for _ in 0..2 {
        let reply = world.reply(&body).await;
        assert_eq!(reply["choices"], expected["choices"]);
        assert_eq!(reply["usage"], expected["usage"]);
    }
    let stats = world.engine.stats();
    assert_eq!(stats.num_kv_blocks_cached, 0);
    assert_eq!(stats.num_prefix_cache_queries, 0);
    assert!(cached_tokens(&cached.reply(&body).await) > 0);
}

/// The prompt is computed once: each further choice computes its last token and its own reply.
#[tokio::test]
async fn r8_choices_share_the_prompt() {
    let n = 3;
    let body = scored("", json!({"n": n, "temperature": 1, "max_tokens": 6}));
    let body = with(
        body,
        json!({"messages": [{"role": "user", "content": "#flat 40#"}]}),
    );
    let world = World::new();
    let reply = world.reply(&body).await;
    let completion_tokens = reply["usage"]["completion_tokens"]
        .as_u64()
        .expect("a count");
    assert_eq!(completion_tokens, n * 6);
    // The last drawn token of a choice is never computed.
    let num_rows = prompt_tokens(&reply) + (n - 1) + (completion_tokens - n);
    let stats = world.engine.stats();
    assert_eq!(stats.num_computed_tokens, num_rows, "{stats:?}");
    assert_eq!(cached_tokens(&reply), 0, "the first choice computed it");
    let separate = uncached().reply(&body).await;
    assert_eq!(reply["choices"], separate["choices"]);
    let choices = reply["choices"].as_array().expect("choices");
    assert_ne!(choices[0]["message"], choices[1]["message"]);
}

#[tokio::test]
async fn metrics_tell_of_hits_and_blocks() {
    let world = World::new();
    let body = ask("count me");
    let num_prompt = prompt_tokens(&world.reply(&body).await);
    let num_hits = cached_tokens(&world.reply(&body).await);
    let answer = world.get("/metrics").await.expect_status(StatusCode::OK);
    let text = String::from_utf8(answer.body.to_vec()).expect("UTF-8");
    let blocks = world.engine.stats();
    assert!(blocks.num_kv_blocks_cached > 1, "{blocks:?}");
    for (name, labels, value) in [
        ("vllm:prefix_cache_queries_total", "", 2 * num_prompt),
        ("vllm:prefix_cache_hits_total", "", num_hits),
        ("assay_prefix_cache_evictions_total", "", 0),
        ("assay_kv_blocks", ",state=\"used\"", 0),
        (
            "assay_kv_blocks",
            ",state=\"cached\"",
            blocks.num_kv_blocks_cached as u64,
        ),
    ] {
        let line = format!("{name}{{model_name=\"scripted\"{labels}}} {value}");
        assert!(
            text.lines().any(|found| found.starts_with(&line)),
            "{line}\n{text}"
        );
    }
}
