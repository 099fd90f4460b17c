//! What a score is and whose it is: the `V` and `O` rows over HTTP.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::scored::{bits, entries, scored};
use crate::stream::counts;
use crate::vocab;
use crate::world::{Answer, World, ask, ask_message, order, with};

/// Log-softmax of a row by the plainest f64 means.
pub(crate) fn log_softmax(row: &[f32]) -> Vec<f64> {
    let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = row.iter().map(|logit| f64::from(logit - most).exp()).sum();
    row.iter()
        .map(|logit| f64::from(logit - most) - sum.ln())
        .collect()
}

#[tokio::test]
async fn v1_v5_fault_7_fault_18_fault_30_fault_35_values_are_the_softmax_of_the_whole_row() {
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
        assert_eq!(counts(alone), counts(together));
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
        assert_eq!(counts(&off), counts(&alone[n]));
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
