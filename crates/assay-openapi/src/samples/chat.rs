//! `POST /v1/chat/completions`.

use assay_api::openai::ChatCompletionRequest;
use serde_json::{Value, json};

use super::reader;
use crate::request::{Request, example, sample};

pub(super) fn request() -> Request {
    let schema = json!({
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 20}, "is_capital": {"type": "boolean"}},
        "required": ["city", "is_capital"],
        "additionalProperties": false,
    });
    let question = json!([{"role": "user", "content": "Name the capital of France."}]);
    Request {
        component: "ChatCompletionRequest",
        key: "chat",
        read: reader!(ChatCompletionRequest::from_json),
        maps: &[],
        samples: vec![
            example(
                "A question",
                json!({"model": "default", "messages": question, "max_tokens": 16}),
            ),
            example(
                "Every token with its log-probability and the five most likely ones",
                json!({"messages": question, "max_tokens": 8, "temperature": 0, "logprobs": true, "top_logprobs": 5}),
            ),
            example(
                "A stream",
                json!({"messages": question, "max_tokens": 8, "stream": true, "stream_options": {"include_usage": true}}),
            ),
            example(
                "A reply that is valid against a schema",
                json!({
                    "messages": question,
                    "response_format": {"type": "json_schema", "json_schema": {"name": "capital", "schema": schema, "strict": true}},
                }),
            ),
            example(
                "A reply that matches a regular expression",
                json!({"messages": question, "structured_outputs": {"regex": "(Paris|Lyon)"}}),
            ),
            sample(json!({
                "messages": conversation(),
                "tools": [tool()],
                "tool_choice": "auto",
                "response_format": {"type": "text"},
            })),
            sample(json!({
                "messages": question,
                "tools": [tool()],
                "tool_choice": {"type": "function", "function": {"name": "get_weather"}},
                "response_format": {"type": "json_object"},
            })),
        ],
    }
}

/// A conversation that holds all that one may hold.
pub(super) fn conversation() -> Value {
    json!([
        {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
        {"role": "user", "content": "The weather?", "name": "ann"},
        {"role": "assistant", "content": null, "reasoning_content": "Which city?", "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}},
        ]},
        {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
    ])
}

/// A tool.
pub(super) fn tool() -> Value {
    json!({"type": "function", "function": {
        "name": "get_weather",
        "description": "The weather in a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": false,
        },
        "strict": false,
    }})
}
