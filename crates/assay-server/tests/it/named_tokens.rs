//! Tokens named for their scores: the `N` rows over HTTP.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::completions::{check_completion, complete};
use crate::scored::{bits, entries, scored};
use crate::stream::check_streams_alike;
use crate::vocab;
use crate::world::{CHAT, COMPLETIONS, World, ask, with};

const DIGITS: [u32; 10] = [48, 49, 50, 51, 52, 53, 54, 55, 56, 57];

fn values(entry: &Value) -> Vec<f64> {
    let list = entry["top_logprobs"].as_array().expect("a list").iter();
    list.map(|one| one["logprob"].as_f64().expect("finite"))
        .collect()
}

/// Checks that the listed values are a distribution, most likely first.
fn check_renormalised(entry: &Value, num_named: usize) {
    let values = values(entry);
    assert_eq!(values.len(), num_named, "all of them and no other: {entry}");
    assert!(values.is_sorted_by(|a, b| a >= b), "{entry}");
    let mass: f64 = values.iter().map(|value| value.exp()).sum();
    assert!((mass - 1.0).abs() < 1e-12, "the mass is {mass}: {entry}");
    assert!(
        entry["allowed_logprob"].as_f64().expect("finite") <= 0.0,
        "n4: {entry}"
    );
}

#[tokio::test]
async fn n1_n2_n4_n8_section_6_ten_digits_over_a_reply_of_two() {
    let world = World::new();
    let body = with(scored(ask("11"), 3), json!({"allowed_token_ids": DIGITS}));
    let reply = check_streams_alike(&world, &body).await;
    assert_eq!(entries(&reply).len(), 2);
    for entry in entries(&reply) {
        check_renormalised(entry, 10);
        let listed = entry["top_logprobs"].as_array().expect("a list");
        let own = listed
            .iter()
            .find(|one| one["token_id"] == entry["token_id"]);
        let own = own.expect("the chosen token is named");
        assert_eq!(bits(&own["logprob"]), bits(&entry["logprob"]), "n2");
    }
    let three = with(
        scored(ask("111"), 0),
        json!({"allowed_token_ids": [48, 49]}),
    );
    let reply = check_streams_alike(&world, &three).await;
    assert_eq!(entries(&reply).len(), 3, "n8");
    let path: f64 = entries(&reply)
        .iter()
        .map(|entry| entry["logprob"].as_f64().expect("finite"))
        .sum();
    assert!(path < 0.0 && path.exp() > 0.5, "{path}");
}

#[tokio::test]
async fn n1_n4_section_6_values_are_the_raw_ones_less_their_mass() {
    let world = World::new();
    let raw = world.reply(&scored(ask("7"), 20)).await;
    let raw = entries(&raw)[0]["top_logprobs"]
        .as_array()
        .expect("a list")
        .clone();
    let raw_value = |id: &Value| {
        let found = raw.iter().find(|one| one["token_id"] == *id);
        found.expect("among the top")["logprob"]
            .as_f64()
            .expect("finite")
    };
    let pair = [raw[1]["token_id"].clone(), raw[4]["token_id"].clone()];
    let body = with(scored(ask("7"), 0), json!({"allowed_token_ids": pair}));
    let reply = world.reply(&body).await;
    let entry = &entries(&reply)[0];
    check_renormalised(entry, 2);
    let values = values(entry);
    let difference = (values[0] - values[1]) - (raw_value(&pair[0]) - raw_value(&pair[1]));
    assert!(difference.abs() < 1e-12, "off by {difference}");
    let mass = pair.iter().map(|id| raw_value(id).exp()).sum::<f64>().ln();
    let told = entry["allowed_logprob"].as_f64().expect("finite");
    assert!((mass - told).abs() < 1e-12, "n4: {told}, not {mass}");
    // N3: the chosen token is not named and keeps its own value.
    assert_eq!(bits(&entry["logprob"]), bits(&raw[0]["logprob"]), "n3");
}

#[tokio::test]
async fn n2_section_6_only_the_chosen_id_named_is_certain() {
    let world = World::new();
    let body = with(scored(ask("a"), 5), json!({"allowed_token_ids": [97]}));
    let reply = world.reply(&body).await;
    let entry = &entries(&reply)[0];
    assert_eq!(entry["logprob"], json!(0.0));
    assert_eq!(values(entry), [0.0]);
    let raw = world.reply(&scored(ask("a"), 0)).await;
    assert_eq!(
        bits(&entry["allowed_logprob"]),
        bits(&entries(&raw)[0]["logprob"]),
        "n4: the mass of one is its own"
    );
}

#[tokio::test]
async fn n1_n7_generation_is_not_masked_and_keys_are_exact() {
    let world = World::new();
    let plain = world.reply(&scored(ask("free"), 0)).await;
    let body = with(
        scored(ask("free"), 0),
        json!({"allowed_token_ids": [48, 49]}),
    );
    let named = check_streams_alike(&world, &body).await;
    assert_eq!(
        named["choices"][0]["message"],
        plain["choices"][0]["message"]
    );
    for entry in entries(&named) {
        let keys: Vec<_> = entry.as_object().expect("an object").keys().collect();
        let expected = [
            "token",
            "logprob",
            "bytes",
            "top_logprobs",
            "token_id",
            "allowed_logprob",
        ];
        assert_eq!(keys, expected, "s3");
    }
}

#[tokio::test]
async fn n5_fault_102_fault_103_completions_list_exactly_the_named_ids_with_full_values() {
    let world = World::new();
    let all: Vec<u32> = (0..vocab::size_u32()).collect();
    let ids = [97, 98, 48];
    for field in ["allowed_token_ids", "logprob_token_ids"] {
        let body = with(
            complete("ab"),
            json!({"logprobs": 2, field: ids, "echo": true}),
        );
        let neighbour = with(complete("xy"), json!({"logprobs": 2}));
        let (reply, other) = tokio::join!(
            check_completion(&world, &body),
            check_completion(&world, &neighbour)
        );
        assert_eq!(other["choices"][0]["text"], "xy");
        let tops = reply["choices"][0]["logprobs"]["top_logprobs"]
            .as_array()
            .expect("a list");
        for top in tops.iter().filter(|top| !top.is_null()) {
            let top = top.as_object().expect("an object");
            let mut keys: Vec<_> = top.keys().map(String::as_str).collect();
            keys.sort_unstable();
            assert_eq!(keys, ["0", "a", "b"], "{field}");
        }
        let whole = with(complete("ab"), json!({"logprobs": 0, field: all}));
        let reply = check_completion(&world, &whole).await;
        let top = &reply["choices"][0]["logprobs"]["top_logprobs"][0];
        let top = top.as_object().expect("an object");
        assert_eq!(top.len(), all.len(), "fault 11: each id has its own key");
        let mass: f64 = top
            .values()
            .map(|value| value.as_f64().expect("finite").exp())
            .sum();
        assert!(
            (mass - 1.0).abs() < 1e-12,
            "not renormalised, yet all of the mass: {mass}"
        );
    }
}

#[tokio::test]
async fn n6_fault_119_ids_are_checked_on_both_routes() {
    let world = World::new();
    let last = vocab::size_u32() - 1;
    for (route, asked, fields) in [
        (CHAT, ask("x"), &["allowed_token_ids"][..]),
        (
            COMPLETIONS,
            complete("x"),
            &["allowed_token_ids", "logprob_token_ids"][..],
        ),
    ] {
        for field in fields {
            let bad = [
                json!([]),
                json!([-1]),
                json!([1.5]),
                json!(["1"]),
                json!([true]),
                json!([null]),
                json!([last + 1]),
                json!([1_u64 << 33]),
                json!([1, 2, 1]),
                json!((0..4_097).collect::<Vec<u32>>()),
                json!("1"),
                json!(1),
                json!({}),
            ];
            for ids in bad {
                let body = with(asked.clone(), json!({*field: ids, "logprobs": 1}));
                world.check_refused_by(route, &body, field).await;
                let unscored = with(asked.clone(), json!({*field: ids}));
                world.check_refused_by(route, &unscored, field).await;
            }
            let fine = with(asked.clone(), json!({*field: [last], "logprobs": 1}));
            world
                .post_to(route, &fine)
                .await
                .expect_status(StatusCode::OK);
            let unscored = with(asked.clone(), json!({*field: [last]}));
            let reply = world
                .post_to(route, &unscored)
                .await
                .expect_status(StatusCode::OK)
                .json();
            assert_eq!(reply["choices"][0]["logprobs"], Value::Null, "no effect");
            let processed = json!({*field: [last], "logprobs": 1, "logprobs_mode": "processed"});
            let body = with(asked.clone(), processed);
            world.check_refused_by(route, &body, "logprobs_mode").await;
        }
    }
    let both = json!({"allowed_token_ids": [1], "logprob_token_ids": [1]});
    world
        .check_refused_by(COMPLETIONS, &with(complete("x"), both), "logprob_token_ids")
        .await;
    // Chat reports a renormalised list only.
    let other = with(
        ask("x"),
        json!({"logprob_token_ids": [1], "logprobs": true}),
    );
    world.check_refused(&other, "logprob_token_ids").await;
}

#[tokio::test]
async fn fault_9_ids_in_place_of_texts_on_chat() {
    let world = World::new();
    let body = with(
        scored(ask("ab"), 3),
        json!({"return_tokens_as_token_ids": true}),
    );
    let reply = world.reply(&body).await;
    for entry in entries(&reply) {
        assert_eq!(entry["token"], format!("token_id:{}", entry["token_id"]));
        for top in entry["top_logprobs"].as_array().expect("a list") {
            assert_eq!(top["token"], format!("token_id:{}", top["token_id"]));
        }
    }
}
