//! What a score is, whose it is, and what it spells: `V`, `O`, `S` and `R` rows over HTTP.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::vocab::{self, END};
use crate::world::{Answer, Setup, World, ask, ask_ids, ask_message, order, with};

fn entries(reply: &Value) -> &Vec<Value> {
    reply["choices"][0]["logprobs"]["content"]
        .as_array()
        .expect("entries")
}

fn bits(value: &Value) -> u64 {
    value.as_f64().expect("a number").to_bits()
}

fn scored(body: Value, top_logprobs: u32) -> Value {
    with(
        body,
        json!({"logprobs": true, "top_logprobs": top_logprobs, "return_token_ids": true}),
    )
}

/// Log-softmax of a row by the plainest f64 means.
fn log_softmax(row: &[f32]) -> Vec<f64> {
    let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = row.iter().map(|logit| f64::from(logit - most).exp()).sum();
    row.iter()
        .map(|logit| f64::from(logit - most) - sum.ln())
        .collect()
}

#[tokio::test]
async fn v1_v5_fault_7_fault_30_values_are_the_softmax_of_the_whole_row() {
    let world = World::new();
    let body = with(
        scored(ask_message("hi"), 5),
        json!({"max_tokens": 8, "top_k": 1}),
    );
    let reply = world.reply(&body).await;
    let choice = &reply["choices"][0];
    let ids = |name: &str| -> Vec<u32> {
        let ids = choice[name].as_array().expect("ids").iter();
        ids.map(|id| {
            id.as_u64()
                .and_then(|id| u32::try_from(id).ok())
                .expect("an id")
        })
        .collect()
    };
    let mut history = ids("prompt_token_ids");
    assert!(!entries(&reply).is_empty());
    for (entry, id) in entries(&reply).iter().zip(ids("token_ids")) {
        let row = assay_testkit::scripted::background_row(vocab::size(), &history);
        let reference = log_softmax(&row);
        let mut ranked: Vec<usize> = (0..row.len()).collect();
        ranked.sort_by(|a, b| row[*b].total_cmp(&row[*a]).then(a.cmp(b)));
        for (alternative, token_id) in entry["top_logprobs"]
            .as_array()
            .expect("list")
            .iter()
            .zip(&ranked)
        {
            assert_eq!(alternative["token_id"], json!(token_id));
            let error = alternative["logprob"].as_f64().expect("a number") - reference[*token_id];
            assert!(error.abs() < 1e-12, "{alternative}: off by {error}");
        }
        assert_eq!(entry["token_id"], json!(ranked[0]), "greedy");
        assert!(
            entry["logprob"].as_f64().expect("a number") < 0.0,
            "never 0 for being greedy"
        );
        history.push(id);
    }
}

#[tokio::test]
async fn v2_fault_26_fault_33_fault_34_sampler_settings_move_nothing() {
    let world = World::new();
    let text = "settings";
    let plain = world.reply(&scored(ask(text), 20)).await;
    let settings = [
        json!({"temperature": 1.7, "seed": 3}),
        json!({"temperature": 0.01, "top_p": 0.3}),
        json!({"temperature": 1, "top_k": 1}),
        json!({"temperature": 1, "min_p": 0.9}),
        json!({"presence_penalty": -2, "frequency_penalty": -2, "temperature": 0}),
        json!({"logit_bias": {"3": -100, "4": 0.5}}),
        json!({"repetition_penalty": 0.99}),
    ];
    for setting in settings {
        let reply = world
            .reply(&scored(with(ask(text), setting.clone()), 20))
            .await;
        let same_prefix = std::iter::zip(entries(&plain), entries(&reply));
        for (plain, other) in
            same_prefix.take_while(|(plain, other)| plain["token_id"] == other["token_id"])
        {
            assert_eq!(plain.to_string(), other.to_string(), "{setting}");
        }
        assert_eq!(
            entries(&plain)[0]["top_logprobs"],
            entries(&reply)[0]["top_logprobs"],
            "{setting}"
        );
        assert_eq!(reply["logprobs_mode"], "raw");
    }
}

#[tokio::test]
async fn v2_v6_processed_mode_is_named_and_writes_minus_9999() {
    let world = World::new();
    let processed = json!({"logprobs_mode": "processed", "temperature": 1, "top_k": 2});
    let body = with(scored(ask_message("#flat 5#"), 4), processed);
    let reply = world.reply(&with(body, json!({"max_tokens": 3}))).await;
    assert_eq!(reply["logprobs_mode"], "processed");
    for entry in entries(&reply) {
        let values: Vec<f64> = entry["top_logprobs"]
            .as_array()
            .expect("list")
            .iter()
            .map(|alternative| alternative["logprob"].as_f64().expect("a number"))
            .collect();
        assert_eq!(values.len(), 4);
        let half = 0.5_f64.ln();
        assert!(
            (values[0] - half).abs() < 1e-12 && (values[1] - half).abs() < 1e-12,
            "{values:?}"
        );
        assert_eq!(values[2..], [-9999.0, -9999.0]);
    }
    world
        .check_refused(
            &with(ask("x"), json!({"logprobs_mode": "raw_logprobs"})),
            "logprobs_mode",
        )
        .await;
}

#[tokio::test]
async fn v3_fault_1_fault_21_fault_25_top_lists_are_exact() {
    let world = World::new();
    // The asked tokens are forced to the top; with a bias of −100 the runner-up is drawn instead.
    for (body, chosen_ranks_first) in [
        (ask("abc"), true),
        (with(ask("abc"), json!({"logit_bias": {"97": -100}})), false),
    ] {
        for k in [0, 1, 5, 20] {
            let reply = world.reply(&scored(body.clone(), k)).await;
            let entry = &entries(&reply)[0];
            let list = entry["top_logprobs"].as_array().expect("list");
            assert_eq!(list.len(), usize::try_from(k).expect("small"));
            let mut seen: Vec<_> = list.iter().map(|one| one["token_id"].as_u64()).collect();
            let values: Vec<f64> = list
                .iter()
                .map(|one| one["logprob"].as_f64().expect("a number"))
                .collect();
            assert!(values.is_sorted_by(|a, b| a >= b), "{values:?}");
            let chosen = list.iter().find(|one| one["token_id"] == entry["token_id"]);
            if let Some(chosen) = chosen {
                assert_eq!(bits(&chosen["logprob"]), bits(&entry["logprob"]));
            }
            if chosen_ranks_first && k > 0 {
                assert_eq!(list[0]["token_id"], 97);
                assert_eq!(entry["token_id"], 97);
            } else if k > 0 {
                assert_eq!(list[0]["token_id"], 97, "the raw row still has it first");
                assert_ne!(entry["token_id"], 97);
            }
            seen.sort();
            seen.dedup();
            assert_eq!(seen.len(), list.len(), "each id once");
        }
    }
    let flat = world
        .reply(&with(
            scored(ask_message("#flat 30#"), 20),
            json!({"max_tokens": 1}),
        ))
        .await;
    let ids: Vec<_> = entries(&flat)[0]["top_logprobs"]
        .as_array()
        .expect("list")
        .iter()
        .map(|one| one["token_id"].as_u64().expect("an id"))
        .collect();
    assert_eq!(ids, (0..20).collect::<Vec<_>>(), "ties by lower id");
}

#[tokio::test]
async fn v4_o5_scores_on_or_off_same_tokens_and_neighbours_do_not_show() {
    let world = World::new();
    let bodies: Vec<Value> = (0..8)
        .map(|n| {
            let body = ask_message(&format!("request {n} {}", "x".repeat(n * 37)));
            let body = with(body, json!({"max_tokens": 40, "temperature": 1, "seed": n}));
            if n % 2 == 0 { scored(body, 7) } else { body }
        })
        .collect();
    let mut alone = Vec::new();
    for body in &bodies {
        alone.push(world.reply(body).await);
    }
    let together =
        futures_util::future::join_all(bodies.iter().map(|body| world.reply(body))).await;
    for (alone, together) in alone.iter().zip(&together) {
        assert_eq!(
            alone["choices"].to_string(),
            together["choices"].to_string()
        );
        assert_eq!(alone["usage"], together["usage"]);
    }
    for (n, body) in bodies.iter().enumerate() {
        let off = with(
            body.clone(),
            json!({"logprobs": false, "top_logprobs": 0, "return_token_ids": false}),
        );
        let off = world.reply(&off).await;
        assert_eq!(off["choices"][0]["logprobs"], Value::Null);
        assert!(off.get("logprobs_mode").is_none());
        assert_eq!(
            off["choices"][0]["message"],
            alone[n]["choices"][0]["message"]
        );
        assert_eq!(
            off["choices"][0]["finish_reason"],
            alone[n]["choices"][0]["finish_reason"]
        );
        assert_eq!(off["usage"], alone[n]["usage"]);
    }
}

#[tokio::test]
async fn v6_fault_111_fault_113_a_row_that_is_no_number_fails_its_request_alone() {
    let world = World::new();
    let ids = vocab::encode(b"abcd");
    let bad = scored(ask_message(&format!("{}#nan 2#", order(&ids))), 2);
    let good = scored(ask("good"), 2);
    let (bad, good): (Answer, Value) = tokio::join!(world.post(&bad), world.reply(&good));
    let error = bad.error(StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(error["code"], "numerical_error");
    let message = error["message"].as_str().expect("text");
    assert!(
        message.chars().any(|c| c.is_ascii_digit()),
        "names the step: {message}"
    );
    assert_eq!(good["choices"][0]["message"]["content"], "good");
    let metrics = world.get("/metrics").await;
    let text = String::from_utf8(metrics.body.to_vec()).expect("UTF-8");
    assert!(
        text.contains("assay_numerical_errors_total{model_name=\"scripted\"} 1"),
        "{text}"
    );
}

#[tokio::test]
async fn o2_a_neighbours_held_tail_stays_its_own() {
    let world = World::new();
    let held = scored(
        with(ask("first one.x second.! third"), json!({"stop": [".!"]})),
        1,
    );
    let other = scored(ask("the other reply. It goes on."), 1);
    for _ in 0..10 {
        let (a, b) = tokio::join!(world.streamed(&held), world.streamed(&other));
        assert_eq!(a["choices"][0]["message"]["content"], "first one.x second");
        assert_eq!(
            b["choices"][0]["message"]["content"],
            "the other reply. It goes on."
        );
    }
}

#[tokio::test]
async fn s2_fault_42_fault_43_halves_of_a_character() {
    let world = World::new();
    let emoji = vocab::encode("🙂".as_bytes());
    let reply = world.reply(&scored(ask_ids(&emoji), 1)).await;
    let tokens: Vec<_> = entries(&reply)
        .iter()
        .map(|entry| entry["token"].as_str().expect("text"))
        .collect();
    assert_eq!(tokens, ["", "", "", "🙂"]);
    for (entry, byte) in entries(&reply).iter().zip("🙂".bytes()) {
        assert_eq!(entry["bytes"], json!([byte]));
        let alternative = &entry["top_logprobs"][0];
        assert_eq!(
            alternative["token"],
            format!("bytes:\\x{byte:02x}"),
            "not text alone"
        );
        assert_eq!(alternative["bytes"], json!([byte]));
    }
    // 0xff can begin nothing, "(" proves the half character before it invalid.
    let invalid = world.reply(&scored(ask_ids(&[0xff, 0xc3, 0x28]), 0)).await;
    assert_eq!(
        invalid["choices"][0]["message"]["content"],
        "\u{fffd}\u{fffd}("
    );
    let tokens: Vec<_> = entries(&invalid)
        .iter()
        .map(|entry| entry["token"].as_str().expect("text"))
        .collect();
    assert_eq!(tokens, ["\u{fffd}", "", "\u{fffd}("]);
}

#[tokio::test]
async fn s3_fault_5_fault_22_keys_are_exact() {
    let keys = |value: &Value| -> Vec<String> {
        value
            .as_object()
            .expect("an object")
            .keys()
            .cloned()
            .collect()
    };
    let world = World::new();
    let body = with(ask("key"), json!({"logprobs": true, "top_logprobs": 2}));
    let reply = world.reply(&body).await;
    assert_eq!(
        keys(&reply["choices"][0]["logprobs"]),
        ["content", "refusal"]
    );
    for entry in entries(&reply) {
        assert_eq!(keys(entry), ["token", "logprob", "bytes", "top_logprobs"]);
        assert_eq!(
            keys(&entry["top_logprobs"][1]),
            ["token", "logprob", "bytes"]
        );
    }
    assert!(reply["choices"][0].get("token_ids").is_none());

    let reply = world
        .reply(&with(body, json!({"return_token_ids": true})))
        .await;
    for entry in entries(&reply) {
        assert_eq!(
            keys(entry),
            ["token", "logprob", "bytes", "top_logprobs", "token_id"]
        );
        assert_eq!(
            keys(&entry["top_logprobs"][0]),
            ["token", "logprob", "bytes", "token_id"]
        );
    }
    assert_eq!(reply["choices"][0]["token_ids"], json!([107, 101, 121]));
    let prompt_tokens = reply["usage"]["prompt_tokens"].as_u64();
    let prompt_ids = reply["choices"][0]["prompt_token_ids"]
        .as_array()
        .expect("ids");
    assert_eq!(prompt_ids.last(), Some(&json!(vocab::GO)));
    assert_eq!(u64::try_from(prompt_ids.len()).ok(), prompt_tokens);
}

#[tokio::test]
async fn s4_the_ending_token_has_no_entry_but_may_be_asked_for() {
    let world = World::new();
    let plain = world.reply(&scored(ask("1"), 1)).await;
    assert_eq!(entries(&plain).len(), 1);
    assert!(plain["choices"][0]["logprobs"].get("end").is_none());
    assert_eq!(plain["usage"]["completion_tokens"], 2);

    let end = json!({"logprobs_end": true});
    let reply = world.reply(&scored(with(ask("1"), end.clone()), 1)).await;
    let entry = &reply["choices"][0]["logprobs"]["end"];
    assert_eq!(entry["token_id"], END);
    assert_eq!(entry["top_logprobs"][0]["token_id"], END);
    assert_eq!(
        bits(&entry["logprob"]),
        bits(&entry["top_logprobs"][0]["logprob"])
    );
    assert_eq!(entries(&reply).len(), 1);

    let cut = with(ask_ids(&[49, 256 + 13]), json!({"stop": "STOP"}));
    let reply = world.reply(&scored(with(cut, end.clone()), 1)).await;
    assert_eq!(entries(&reply).len(), 1, "text cut by a stop has no entry");
    assert_eq!(reply["choices"][0]["logprobs"]["end"]["token_id"], 256 + 13);

    let long = with(ask("123"), json!({"max_tokens": 2}));
    let reply = world.reply(&scored(with(long, end), 1)).await;
    assert_eq!(reply["choices"][0]["logprobs"]["end"], Value::Null);
    assert_eq!(reply["choices"][0]["finish_reason"], "length");
}

#[tokio::test]
async fn s6_fault_54_fault_58_a_stop_inside_a_token_cuts_its_entry() {
    let world = World::new();
    // ".!" then "!x": the stop "!" begins inside the first.
    let ids = [256, 256 + 2, 256 + 3];
    let whole = world.reply(&scored(ask_ids(&ids), 3)).await;
    let cut = world
        .reply(&scored(with(ask_ids(&ids), json!({"stop": "!"})), 3))
        .await;
    assert_eq!(cut["choices"][0]["message"]["content"], "Hello.");
    assert_eq!(cut["choices"][0]["token_ids"], json!([256, 258]));
    let (entry, full) = (&entries(&cut)[1], &entries(&whole)[1]);
    assert_eq!(entry["token"], ".");
    assert_eq!(entry["bytes"], json!([46]));
    assert_eq!(bits(&entry["logprob"]), bits(&full["logprob"]));
    assert_eq!(entry["top_logprobs"], full["top_logprobs"]);
}

#[tokio::test]
async fn s7_fault_47_fault_49_a_limit_inside_a_character() {
    let world = World::new();
    let ids = vocab::encode("a🙂".as_bytes());
    let reply = world
        .reply(&scored(with(ask_ids(&ids), json!({"max_tokens": 3})), 0))
        .await;
    let choice = &reply["choices"][0];
    assert_eq!(choice["message"]["content"], "a");
    assert_eq!(choice["finish_reason"], "length");
    let kept: Vec<_> = entries(&reply)
        .iter()
        .map(|entry| (entry["token"].clone(), entry["bytes"].clone()))
        .collect();
    assert_eq!(
        kept,
        [
            (json!("a"), json!([97])),
            (json!(""), json!([0xf0])),
            (json!(""), json!([0x9f]))
        ]
    );
}

#[tokio::test]
async fn r1_r2_fault_2_fault_10_fault_14_fault_27_ways_to_ask() {
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
