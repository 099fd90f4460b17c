//! Model names, and the list of models.

use axum::http::StatusCode;
use serde_json::json;

use crate::world::{MODEL, Setup, World, ask, with};

#[tokio::test]
async fn the_list_and_single_models() {
    let world = World::new();
    let list = world
        .get("/v1/models")
        .await
        .expect_status(StatusCode::OK)
        .json();
    assert_eq!(list["object"], "list");
    assert_eq!(list["data"].as_array().map(Vec::len), Some(1));
    let model = &list["data"][0];
    assert_eq!(model["id"], MODEL);
    assert_eq!(model["object"], "model");
    assert_eq!(model["created"], 1_700_000_000);
    assert_eq!(model["max_model_len"], 4_096);
    for name in [MODEL, "default", "alias/of-it", "alias%2Fof-it"] {
        let answer = world.get(&format!("/v1/models/{name}")).await;
        assert_eq!(
            answer.expect_status(StatusCode::OK).json(),
            *model,
            "{name}"
        );
    }
    let error = world
        .get("/v1/models/other")
        .await
        .error(StatusCode::NOT_FOUND);
    assert_eq!(error["code"], "model_not_found");
    let not_text = world.get("/v1/models/%ff").await;
    not_text.error(StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn unknown_names_are_refused_unless_any_name_goes() {
    let world = World::new();
    for name in [MODEL, "default", "alias/of-it"] {
        let reply = world.reply(&with(ask("x"), json!({"model": name}))).await;
        assert_eq!(reply["model"], MODEL);
    }
    for name in ["", "gpt-4o", "Scripted", "scripted ", &"x".repeat(10_000)] {
        let answer = world.post(&with(ask("x"), json!({"model": name}))).await;
        let error = answer.error(StatusCode::NOT_FOUND);
        assert_eq!(error["code"], "model_not_found");
        assert_eq!(error["param"], "model");
        assert!(
            answer.body.len() < 1_000,
            "client text is not repeated at length"
        );
    }
    let mut setup = Setup::default();
    setup.config.any_model_name = true;
    setup
        .build()
        .reply(&with(ask("x"), json!({"model": "gpt-4o"})))
        .await;
}

#[tokio::test]
async fn replies_name_themselves() {
    let world = World::new();
    let (first, second) = (world.reply(&ask("x")).await, world.reply(&ask("x")).await);
    assert!(
        first["id"]
            .as_str()
            .is_some_and(|id| id.starts_with("chatcmpl-"))
    );
    assert_ne!(first["id"], second["id"]);
    assert_eq!(first["object"], "chat.completion");
    let fingerprint = first["system_fingerprint"].as_str().expect("text");
    assert!(fingerprint.starts_with("fp_"), "{fingerprint}");
    assert_eq!(first["seed"], 7);
    let message = &first["choices"][0]["message"];
    assert_eq!(
        *message,
        json!({"role": "assistant", "content": "x", "refusal": null})
    );
}
