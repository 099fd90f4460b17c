//! `POST /v1/replay`: receipts computed again by the server that is asked.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::decisions::{DECIDE, STATE};
use crate::world::{CHAT, Setup, World, ask_message, with};

const REPLAY: &str = "/v1/replay";

async fn verdict(world: &World, receipt: &Value) -> Value {
    let answer = world.post_to(REPLAY, &json!({"receipt": receipt})).await;
    answer.expect_status(StatusCode::OK).json()
}

async fn receipt_of(world: &World, path: &str, body: &Value) -> Value {
    let body = with(body.clone(), json!({"receipt": true}));
    let reply = world.post_to(path, &body).await;
    reply.expect_status(StatusCode::OK).json()["receipt"].clone()
}

fn drawn() -> Value {
    with(
        ask_message("Tell me something."),
        json!({"temperature": 1.2, "max_tokens": 9, "n": 2, "seed": 4}),
    )
}

fn decided() -> Value {
    json!({"state": STATE, "schema": {"enum": ["one", "two", "none of them"]}, "debias": {"rotations": 2}})
}

#[tokio::test]
async fn receipts_of_this_model_are_identical_on_another_server() {
    for (path, body, num_outputs, num_drawn, num_distributions) in
        [(CHAT, drawn(), 2, 18, 0), (DECIDE, decided(), 2, 0, 1)]
    {
        let receipt = receipt_of(&World::new(), path, &body).await;
        let verdict = verdict(&World::new(), &receipt).await;
        assert_eq!(verdict["result"], "identical", "{verdict}");
        assert_eq!(verdict["outputs"], num_outputs);
        assert_eq!(verdict["drawn"], num_drawn);
        assert_eq!(verdict["distributions"], num_distributions);
        assert!(verdict["values"].as_u64().is_some_and(|values| values > 0));
    }
}

#[tokio::test]
async fn what_is_not_as_it_was_is_told() {
    let world = World::new();
    let receipt = receipt_of(&world, DECIDE, &decided()).await;
    let mut changed = receipt.clone();
    changed["created"] = json!(7);
    let verdict_of_it = verdict(&world, &changed).await;
    assert_eq!(verdict_of_it["result"], "broken");
    assert!(
        verdict_of_it["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains("created"))
    );

    let mut other = Setup::default();
    other.config.identity.model.sha256 = assay_receipt::Sha256Hex::of_bytes(b"other weights");
    let verdict_elsewhere = verdict(&other.build(), &receipt).await;
    assert_eq!(verdict_elsewhere["result"], "different");
    assert_eq!(verdict_elsewhere["place"], "model.sha256");

    for no_receipt in [json!({}), json!({"format": "assay-receipt-1"})] {
        assert_eq!(verdict(&world, &no_receipt).await["result"], "broken");
    }
}

#[tokio::test]
async fn what_is_no_request_is_refused() {
    let world = World::new();
    for body in [
        json!({}),
        json!({"receipt": null}),
        json!({"receipt": "x"}),
        json!({"receipt": []}),
    ] {
        world.check_refused_by(REPLAY, &body, "receipt").await;
    }
    let other_form = {
        let mut members = receipt_of(&world, DECIDE, &decided()).await;
        members["format"] = json!("assay-receipt-9");
        members
    };
    // A form of another version is first of all a changed receipt.
    assert_eq!(verdict(&world, &other_form).await["result"], "broken");
    let answer = world
        .post_to(REPLAY, &json!({"receipt": {}, "more": 1}))
        .await;
    assert_eq!(answer.header("x-assay-ignored"), Some("more"));
}

#[tokio::test]
async fn a_receipt_beyond_this_servers_context_is_refused() {
    let long = with(ask_message("Tell me more."), json!({"max_tokens": 40}));
    let receipt = receipt_of(&World::new(), CHAT, &long).await;
    let small = Setup {
        context_length: 32,
        ..Setup::default()
    };
    let body = json!({"receipt": receipt});
    small
        .build()
        .check_refused_by(REPLAY, &body, "receipt")
        .await;
}
