//! Ways to ask for scores, right and wrong: the `R` rows over HTTP.

use serde_json::{Value, json};

use crate::scored::{entries, scored};
use crate::world::{Setup, World, ask, ask_message, with};

#[tokio::test]
async fn r1_r2_fault_2_fault_10_fault_14_fault_27_fault_41_ways_to_ask() {
    let world = World::new();
    for (ask_for, num_alternatives) in [
        (json!({"logprobs": true}), 0),
        (json!({"logprobs": true, "top_logprobs": null}), 0),
        (json!({"logprobs": true, "top_logprobs": 0}), 0),
        (json!({"logprobs": 0}), 0),
        (json!({"logprobs": 4}), 4),
        (json!({"logprobs": 4, "top_logprobs": 4}), 4),
        (json!({"logprobs": 20}), 20),
    ] {
        let reply = world.reply(&with(ask("ab"), ask_for.clone())).await;
        assert_eq!(entries(&reply).len(), 2, "{ask_for}");
        for entry in entries(&reply) {
            assert_eq!(
                entry["top_logprobs"].as_array().map(Vec::len),
                Some(num_alternatives),
                "{ask_for}"
            );
        }
    }
    for off in [
        json!({}),
        json!({"logprobs": null}),
        json!({"logprobs": false, "top_logprobs": 0}),
    ] {
        let reply = world.reply(&with(ask("ab"), off.clone())).await;
        assert_eq!(reply["choices"][0]["logprobs"], Value::Null, "{off}");
    }
}

#[tokio::test]
async fn r3_bad_asks_are_refused_before_any_work() {
    let world = World::new();
    let cases = [
        (
            json!({"logprobs": true, "top_logprobs": 21}),
            "top_logprobs",
        ),
        (
            json!({"logprobs": true, "top_logprobs": -1}),
            "top_logprobs",
        ),
        (
            json!({"logprobs": true, "top_logprobs": 1.5}),
            "top_logprobs",
        ),
        (
            json!({"logprobs": true, "top_logprobs": 1.0}),
            "top_logprobs",
        ),
        (
            json!({"logprobs": true, "top_logprobs": true}),
            "top_logprobs",
        ),
        (
            json!({"logprobs": true, "top_logprobs": "5"}),
            "top_logprobs",
        ),
        (
            json!({"logprobs": true, "top_logprobs": u64::MAX}),
            "top_logprobs",
        ),
        (json!({"top_logprobs": 5}), "top_logprobs"),
        (
            json!({"logprobs": false, "top_logprobs": 5}),
            "top_logprobs",
        ),
        (json!({"logprobs": 3, "top_logprobs": 5}), "top_logprobs"),
        (json!({"logprobs": "true"}), "logprobs"),
        (json!({"logprobs": 21}), "logprobs"),
        (json!({"logprobs": -1}), "logprobs"),
        (json!({"logprobs": 1.5}), "logprobs"),
        (json!({"logprobs": {}}), "logprobs"),
    ];
    for (bad, param) in cases {
        for stream in [false, true] {
            let body = with(with(ask("x"), bad.clone()), json!({"stream": stream}));
            world.check_refused(&body, param).await;
        }
    }
    assert_eq!(world.engine.stats().num_steps, 0, "no work was done");
}

#[tokio::test]
async fn r5_fault_31_every_visible_token_has_its_entry_at_any_length() {
    let world = Setup {
        context_length: 20_000,
        ..Setup::default()
    }
    .build();
    let body = with(
        scored(ask_message("#flat 90#"), 2),
        json!({"temperature": 1, "max_tokens": 1_500}),
    );
    let replies = futures_util::future::join_all((0..4).map(|_| world.reply(&body))).await;
    for reply in replies {
        assert_eq!(entries(&reply).len(), 1_500);
        assert_eq!(reply["usage"]["completion_tokens"], 1_500);
        assert_eq!(reply["choices"][0]["finish_reason"], "length");
    }
}

#[tokio::test]
async fn r8_fault_106_fault_107_fault_117_choices_have_their_own_stream_and_entries() {
    let world = World::new();
    let bias = json!({"0": -100, "7": -100});
    let body = with(
        scored(ask_message("#flat 60#"), 1),
        json!({
            "n": 5, "temperature": 1, "max_tokens": 30, "logit_bias": bias,
        }),
    );
    let reply = world.reply(&body).await;
    let choices = reply["choices"].as_array().expect("choices");
    let texts: std::collections::BTreeSet<_> = choices
        .iter()
        .map(|choice| choice["token_ids"].to_string())
        .collect();
    assert_eq!(texts.len(), 5, "five different replies");
    for (index, choice) in choices.iter().enumerate() {
        assert_eq!(choice["index"], json!(index));
        let ids: Vec<_> = choice["token_ids"].as_array().expect("ids").clone();
        assert!(
            !ids.contains(&json!(0)) && !ids.contains(&json!(7)),
            "the bias holds in every choice"
        );
        let of_entries: Vec<_> = choice["logprobs"]["content"]
            .as_array()
            .expect("entries")
            .iter()
            .map(|entry| entry["token_id"].clone())
            .collect();
        assert_eq!(of_entries, ids);
    }
    let again = world.reply(&body).await;
    assert_eq!(
        again["choices"].to_string(),
        reply["choices"].to_string(),
        "the seed repeats"
    );
    let first = world.reply(&with(body, json!({"n": 1}))).await;
    assert_eq!(
        first["choices"][0]["token_ids"], choices[0]["token_ids"],
        "choice 0 alone"
    );
}

#[tokio::test]
async fn r14_a_drawn_seed_is_told_and_repeats_the_reply() {
    let world = World::new();
    let body = with(
        ask_message("#flat 90#"),
        json!({"temperature": 1, "max_tokens": 30, "seed": null}),
    );
    let (first, second) = (world.reply(&body).await, world.reply(&body).await);
    assert_ne!(first["seed"], second["seed"]);
    assert_ne!(
        first["choices"][0]["message"],
        second["choices"][0]["message"]
    );
    let seeded = with(body.clone(), json!({"seed": first["seed"]}));
    let again = world.reply(&seeded).await;
    assert_eq!(again["choices"], first["choices"]);
    for seed in [i64::MIN, -1, 0, i64::MAX] {
        let reply = world
            .reply(&with(body.clone(), json!({"seed": seed})))
            .await;
        assert_eq!(reply["seed"], json!(seed));
    }
}
