//! `POST /v1/messages` and `/v1/messages/count_tokens`.

use assay_api::anthropic::MessagesRequest;
use serde_json::{Value, json};

use super::reader;
use crate::request::{Request, Sample, example, sample};

pub(super) fn request() -> Request {
    let question = json!([{"role": "user", "content": "Name the capital of France."}]);
    let mut samples = vec![
        example(
            "A question",
            json!({"model": "default", "max_tokens": 16, "messages": question}),
        ),
        example(
            "A stream",
            json!({"model": "default", "max_tokens": 8, "messages": question, "stream": true}),
        ),
    ];
    samples.extend(everything());
    Request {
        component: "MessagesRequest",
        key: "anthropic",
        read: reader!(MessagesRequest::from_json),
        maps: &[],
        samples,
    }
}

pub(super) fn count_request() -> Request {
    let mut samples = vec![example(
        "Tokens of a conversation",
        json!({
            "model": "default",
            "system": "Be brief.",
            "messages": [{"role": "user", "content": "Name the capital of France."}],
        }),
    )];
    samples.extend(everything());
    Request {
        component: "CountTokensRequest",
        key: "anthropic",
        read: reader!(MessagesRequest::to_count),
        maps: &[],
        samples,
    }
}

fn everything() -> Vec<Sample> {
    let tool: Value =
        json!({"type": "custom", "name": "get_weather", "input_schema": {"type": "object"}});
    let thinking = |kind: &str| {
        sample(json!({
            "max_tokens": 8,
            "thinking": {"type": kind},
            "messages": [{"role": "user", "content": "x"}],
        }))
    };
    let choice = |choice: Value| {
        sample(json!({
            "max_tokens": 8,
            "tools": [tool],
            "tool_choice": choice,
            "messages": [{"role": "user", "content": "x"}],
        }))
    };
    vec![
        sample(json!({
            "max_tokens": 8,
            "system": [{"type": "text", "text": "Be brief."}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "The weather?"}]},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "Which city?", "signature": ""},
                    {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "is_error": false, "content": [{"type": "text", "text": "rain"}]},
                ]},
            ],
            "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": true}},
        })),
        thinking("enabled"),
        thinking("adaptive"),
        thinking("disabled"),
        choice(json!({"type": "auto"})),
        choice(json!({"type": "any"})),
        choice(json!({"type": "none"})),
        choice(json!({"type": "tool", "name": "get_weather"})),
    ]
}
