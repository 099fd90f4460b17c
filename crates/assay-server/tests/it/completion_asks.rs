//! Ways to ask for a completion, right and wrong: the `R` rows over HTTP.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::completions::{check_completion, complete, complete_prompt, list};
use crate::vocab::{self, OMEGA, TWIN};
use crate::world::{COMPLETIONS, Setup, World, script, with};

#[tokio::test]
async fn r3_r11_fault_119_bad_asks_are_refused_before_any_work() {
    let world = World::new();
    let size = vocab::size();
    let cases = [
        (json!({"logprobs": 21}), "logprobs"),
        (json!({"logprobs": -1}), "logprobs"),
        (json!({"logprobs": 1.5}), "logprobs"),
        (json!({"logprobs": true}), "logprobs"),
        (json!({"logprobs": "5"}), "logprobs"),
        (json!({"top_logprobs": 3}), "top_logprobs"),
        (json!({"suffix": "end"}), "suffix"),
        (json!({"best_of": 2}), "best_of"),
        (json!({"best_of": 1, "n": 2}), "best_of"),
        (json!({"n": 2, "max_tokens": 0}), "n"),
        (json!({"echo": 1}), "echo"),
        (json!({"echo": "true"}), "echo"),
        (json!({"max_tokens": -2}), "max_tokens"),
        (json!({"max_tokens": 1.5}), "max_tokens"),
        (json!({"prompt": null}), "prompt"),
        (json!({"prompt": ""}), "prompt"),
        (json!({"prompt": []}), "prompt"),
        (json!({"prompt": {}}), "prompt"),
        (json!({"prompt": 5}), "prompt"),
        (json!({"prompt": [true]}), "prompt[0]"),
        (json!({"prompt": [[]]}), "prompt[0]"),
        (json!({"prompt": ["a", ""]}), "prompt[1]"),
        (json!({"prompt": ["a", 5]}), "prompt[1]"),
        (json!({"prompt": [5, "a"]}), "prompt"),
        (json!({"prompt": [-1]}), "prompt"),
        (json!({"prompt": [1.5]}), "prompt"),
        (json!({"prompt": [size]}), "prompt"),
        (json!({"prompt": [[1], [size]]}), "prompt[1]"),
        (json!({"prompt": [1_u64 << 40]}), "prompt"),
        (json!({"prompt": vec!["a"; 1_025]}), "prompt"),
        (json!({"prompt": vec!["a"; 100], "n": 100}), "n"),
        (
            json!({"messages": [{"role": "user", "content": "x"}]}),
            "messages",
        ),
        (
            json!({"stream_options": {"include_usage": true}}),
            "stream_options",
        ),
        (json!({"prompt_logprobs": 21}), "prompt_logprobs"),
        (json!({"prompt_logprobs": -1}), "prompt_logprobs"),
        (json!({"temperature": 3}), "temperature"),
        (json!({"logit_bias": {size.to_string(): 1}}), "logit_bias"),
    ];
    for (bad, param) in cases {
        let body = with(complete("x"), bad);
        world.check_refused_by(COMPLETIONS, &body, param).await;
        if body.get("stream_options").is_none() {
            let streamed = with(body, json!({"stream": true}));
            world.check_refused_by(COMPLETIONS, &streamed, param).await;
        }
    }
    assert_eq!(world.engine.stats().num_steps, 0, "no work was done");
}

#[tokio::test]
async fn r4_absent_limits_are_sixteen_and_none_is_an_empty_completion() {
    let world = Setup {
        context_length: 60,
        ..Setup::default()
    }
    .build();
    let prompt = json!(vec![65; 20]);
    let cases = [
        (json!({}), 16),
        (json!({"max_tokens": null}), 16),
        (json!({"max_tokens": -1}), 40),
        (json!({"max_completion_tokens": 3, "max_tokens": 9}), 3),
        (json!({"max_tokens": 40}), 40),
        (json!({"max_tokens": 0}), 0),
    ];
    for (limit, num_tokens) in cases {
        let body = with(complete_prompt(&prompt), limit.clone());
        let body = with(
            body,
            json!({"logit_bias": {vocab::END.to_string(): -100}, "logprobs": 0}),
        );
        let reply = check_completion(&world, &body).await;
        assert_eq!(reply["usage"]["completion_tokens"], num_tokens, "{limit}");
        assert_eq!(reply["usage"]["prompt_tokens"], 20, "{limit}");
        assert_eq!(reply["choices"][0]["finish_reason"], "length", "{limit}");
    }
    // What was not asked for is cut to what is left, never refused.
    let long = complete_prompt(&json!(vec![65; 50]));
    let barred = json!({"logit_bias": {vocab::END.to_string(): -100}});
    let reply = check_completion(&world, &with(long, barred)).await;
    assert_eq!(reply["usage"]["completion_tokens"], 10);
}

#[tokio::test]
async fn r9_too_long_is_refused_with_the_counts() {
    let world = Setup {
        context_length: 50,
        ..Setup::default()
    }
    .build();
    let full = json!(vec![65; 50]);
    let scored = json!({"max_tokens": 0, "echo": true, "logprobs": 1});
    let reply = check_completion(&world, &with(complete_prompt(&full), scored)).await;
    assert_eq!(list(&reply["choices"][0]["logprobs"]["tokens"]).len(), 50);
    let cases = [
        (full.clone(), json!({}), "prompt"),
        (full, json!({"max_tokens": 1}), "prompt"),
        (json!(vec![65; 51]), json!({"max_tokens": 0}), "prompt"),
        (json!("x".repeat(100_000)), json!({}), "prompt"),
        (json!(vec![65; 20]), json!({"max_tokens": 31}), "max_tokens"),
        (json!(["x", "x".repeat(51)]), json!({}), "prompt[1]"),
        (json!(["x", "x".repeat(100_000)]), json!({}), "prompt[1]"),
        (
            json!([[65], vec![65; 51]]),
            json!({"max_tokens": 1}),
            "prompt[1]",
        ),
        (
            json!([[65], vec![65; 20]]),
            json!({"max_tokens": 31}),
            "max_tokens",
        ),
    ];
    for (prompt, limit, param) in cases {
        let body = with(complete_prompt(&prompt), limit);
        let answer = world.post_to(COMPLETIONS, &body).await;
        let error = answer.error(StatusCode::BAD_REQUEST);
        assert_eq!(error["code"], "context_length_exceeded", "{error}");
        assert_eq!(error["param"], param, "{error}");
        let message = error["message"].as_str().expect("text");
        assert!(message.contains("50"), "{message}");
        if prompt[1].is_string() || prompt[1].is_array() {
            assert!(message.contains("`prompt[1]`"), "{message}");
        }
    }
}

/// Many scores at many places: what one reply in memory may not hold is refused before any work, a
/// stream holds nothing.
#[tokio::test]
async fn n6_scores_are_bounded_where_a_reply_is_kept() {
    let world = Setup {
        context_length: 20_000,
        ..Setup::default()
    }
    .build();
    let named: Vec<u32> = (0..250).collect();
    let more = json!({"logprobs": 0, "logprob_token_ids": named, "max_tokens": 1, "echo": true});
    let body = with(complete_prompt(&json!(vec![65; 8_400])), more);
    let message = world
        .check_refused_by(COMPLETIONS, &body, "logprob_token_ids")
        .await;
    assert!(
        message.contains("scores at all places") && message.contains("stream"),
        "{message}"
    );
    let choices = json!({"prompt": vec![65; 100], "n": 84});
    world
        .check_refused_by(
            COMPLETIONS,
            &with(body.clone(), choices),
            "logprob_token_ids",
        )
        .await;
    let prompt_scores = json!({"echo": false, "prompt_logprobs": 0});
    world
        .check_refused_by(
            COMPLETIONS,
            &with(body.clone(), prompt_scores),
            "logprob_token_ids",
        )
        .await;
    let long = json!({"logprobs": true, "allowed_token_ids": named, "max_tokens": 8_400});
    world
        .check_refused(&with(crate::world::ask("x"), long), "allowed_token_ids")
        .await;
    let alternatives = json!({"prompt": [65], "n": 100, "logprobs": 20, "max_tokens": 1_000});
    let body_of_tops = with(complete_prompt(&json!([65])), alternatives);
    world
        .check_refused_by(COMPLETIONS, &body_of_tops, "logprobs")
        .await;
    assert_eq!(world.engine.stats().num_steps, 0, "no work was done");
    // Fewer at a time is fine.
    let fits = with(body, json!({"prompt": vec![65; 100]}));
    let answer = world.post_to(COMPLETIONS, &fits).await;
    answer.expect_status(StatusCode::OK);
}

#[tokio::test]
async fn r11_fault_9_fault_45_tops_are_keyed_by_text_or_by_id() {
    let world = World::new();
    let body = with(
        complete_prompt(&json!("#flat 270#<|go|>")),
        json!({"logprobs": 20, "max_tokens": 1}),
    );
    let by_text = check_completion(&world, &body).await;
    let top = by_text["choices"][0]["logprobs"]["top_logprobs"][0].clone();
    assert_eq!(top.as_object().map(serde_json::Map::len), Some(20));
    let ids = with(body, json!({"return_tokens_as_token_ids": true}));
    let by_id = check_completion(&world, &ids).await;
    let logprobs = &by_id["choices"][0]["logprobs"];
    let keys: Vec<_> = logprobs["top_logprobs"][0]
        .as_object()
        .expect("an object")
        .keys()
        .collect();
    let expected: Vec<_> = (0..20).map(|id| format!("token_id:{id}")).collect();
    assert_eq!(keys, expected.iter().collect::<Vec<_>>());
    assert_eq!(logprobs["tokens"][0], "token_id:0");
}

#[tokio::test]
async fn r11_fault_11_of_two_that_print_alike_the_likelier_keeps_the_text() {
    let world = World::new();
    let mut losers = std::collections::BTreeSet::new();
    for first in 0..8 {
        let body = json!({
            "prompt": [first, 3], "logprobs": 0, "max_tokens": 1, "temperature": 0,
            "logprob_token_ids": [TWIN, OMEGA], "logit_bias": {vocab::END.to_string(): -100},
        });
        let reply = check_completion(&world, &body).await;
        let top = &reply["choices"][0]["logprobs"]["top_logprobs"][0];
        let row = script(&[first, 3]);
        let logit = |id: u32| row[usize::try_from(id).expect("small")];
        let loser = if logit(OMEGA) >= logit(TWIN) {
            TWIN
        } else {
            OMEGA
        };
        let keys: Vec<_> = top.as_object().expect("an object").keys().collect();
        assert_eq!(keys, ["Ω", &format!("token_id:{loser}")]);
        losers.insert(loser);
    }
    assert_eq!(losers.len(), 2, "either was the likelier one");
}

#[tokio::test]
async fn r12_r14_r16_other_fields_of_a_completion() {
    let world = World::new();
    let more = json!({"user": "u", "store": true, "best_of": 1, "vendor": 1, "suffix": null, "model": "scripted"});
    let answer = world
        .post_to(COMPLETIONS, &with(complete("hi"), more))
        .await;
    let answer = answer.expect_status(StatusCode::OK);
    assert_eq!(answer.header("x-assay-ignored"), Some("vendor"));
    assert_eq!(answer.json()["choices"][0]["text"], "hi");
    assert_eq!(answer.json()["seed"], 7);
    let unseeded = with(
        complete_prompt(&json!("#flat 90#<|go|>")),
        json!({"seed": null, "temperature": 1}),
    );
    let first = check_seed(&world, &unseeded, Value::Null).await;
    let second = check_seed(&world, &unseeded, Value::Null).await;
    assert_ne!(first["choices"], second["choices"]);
    let again = check_seed(&world, &unseeded, first["seed"].clone()).await;
    assert_eq!(again["choices"], first["choices"]);
    let both = with(unseeded, json!({"n": 2, "best_of": 2}));
    assert_eq!(
        list(&check_completion(&world, &with(both, json!({"seed": 1}))).await["choices"]).len(),
        2
    );
    let wrong = with(complete("x"), json!({"model": "other"}));
    let answer = world.post_to(COMPLETIONS, &wrong).await;
    assert_eq!(
        answer.error(StatusCode::NOT_FOUND)["code"],
        "model_not_found"
    );
}

async fn check_seed(world: &World, body: &Value, seed: Value) -> Value {
    let answer = world
        .post_to(COMPLETIONS, &with(body.clone(), json!({"seed": seed})))
        .await;
    answer.expect_status(StatusCode::OK).json()
}
