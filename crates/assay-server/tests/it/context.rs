//! Limits of a reply, and the context that prompt and reply share.

use serde_json::json;

use crate::world::{Setup, ask_message, with};

#[tokio::test]
async fn r4_fault_162_absent_limits_mean_the_rest_of_the_context() {
    let world = Setup {
        context_length: 60,
        ..Setup::default()
    }
    .build();
    for limit in [
        json!({}),
        json!({"max_tokens": null}),
        json!({"max_tokens": 0}),
        json!({"max_tokens": -1}),
        json!({"max_completion_tokens": 0}),
        json!({"max_completion_tokens": -1, "max_tokens": 3}),
    ] {
        let reply = world
            .reply(&with(ask_message("#flat 9#"), limit.clone()))
            .await;
        assert_eq!(reply["choices"][0]["finish_reason"], "length", "{limit}");
        assert_eq!(reply["usage"]["total_tokens"], 60, "{limit}");
    }
    let both = json!({"max_tokens": 9, "max_completion_tokens": 3});
    let reply = world.reply(&with(ask_message("#flat 9#"), both)).await;
    assert_eq!(
        reply["usage"]["completion_tokens"], 3,
        "the newer name wins"
    );
}

#[tokio::test]
async fn r4_fault_121_other_negatives_are_told_the_room_left() {
    let world = Setup {
        context_length: 100,
        ..Setup::default()
    }
    .build();
    let used = world
        .reply(&with(ask_message("hi"), json!({"max_tokens": 1})))
        .await;
    let room = 100 - used["usage"]["prompt_tokens"].as_u64().expect("a count");
    for field in ["max_tokens", "max_completion_tokens"] {
        for negative in [-2, -950, i64::MIN] {
            let message = world
                .check_refused(&with(ask_message("hi"), json!({field: negative})), field)
                .await;
            assert!(message.contains(&room.to_string()), "{message}");
        }
    }
}

#[tokio::test]
async fn r9_fault_161_fault_163_too_long_is_refused_with_the_counts() {
    let world = Setup {
        context_length: 50,
        ..Setup::default()
    }
    .build();
    let used = world
        .reply(&with(ask_message("hi"), json!({"max_tokens": 1})))
        .await;
    let prompt_tokens = used["usage"]["prompt_tokens"].as_u64().expect("a count");
    let room = 50 - prompt_tokens;
    let just = with(ask_message("hi"), json!({"max_tokens": room}));
    assert_eq!(world.reply(&just).await["usage"]["total_tokens"], 50);
    for max_tokens in [
        room + 1,
        10_000,
        1 << 40,
        u64::try_from(i64::MAX).expect("positive"),
    ] {
        let answer = world
            .post(&with(ask_message("hi"), json!({"max_tokens": max_tokens})))
            .await;
        let error = answer.error(axum::http::StatusCode::BAD_REQUEST);
        assert_eq!(error["code"], "context_length_exceeded");
        assert_eq!(error["param"], "max_tokens");
        let message = error["message"].as_str().expect("text");
        for count in [50, prompt_tokens, max_tokens, prompt_tokens + max_tokens] {
            assert!(message.contains(&count.to_string()), "{count}: {message}");
        }
    }
    for content in ["x".repeat(50), "x".repeat(100_000)] {
        let answer = world.post(&ask_message(&content)).await;
        let error = answer.error(axum::http::StatusCode::BAD_REQUEST);
        assert_eq!(error["code"], "context_length_exceeded");
        assert_eq!(error["param"], "messages");
        assert!(
            error["message"].as_str().expect("text").contains("50"),
            "{error}"
        );
    }
}

/// Where the KV memory is smaller than the context, the refusal says which of the two it was.
#[tokio::test]
async fn r9_fault_163_more_than_the_kv_memory_holds_is_refused_with_the_room_left() {
    let world = Setup {
        num_kv_blocks: 4,
        ..Setup::default()
    }
    .build();
    let used = world
        .reply(&with(ask_message("hi"), json!({"max_tokens": 1})))
        .await;
    let prompt_tokens = used["usage"]["prompt_tokens"].as_u64().expect("a count");
    let room = 64 - prompt_tokens;
    let just = with(
        ask_message("hi"),
        json!({"max_tokens": room, "logit_bias": {}}),
    );
    world.reply(&just).await;
    let over = with(ask_message("hi"), json!({"max_tokens": room + 1}));
    let message = world.check_refused(&over, "max_tokens").await;
    for part in ["4096", "64", "--kv-memory", "65", &room.to_string()] {
        assert!(message.contains(part), "{part}: {message}");
    }
    let message = world
        .check_refused(&ask_message(&"x".repeat(70)), "messages")
        .await;
    assert!(message.contains("--kv-memory"), "{message}");
}
