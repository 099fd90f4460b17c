//! `POST /v1/completions` and `/v1/score`.

use assay_api::openai::CompletionRequest;
use assay_api::score::ScoreRequest;
use serde_json::json;

use super::chat::{conversation, tool};
use super::reader;
use crate::request::{Request, example, sample};

pub(super) fn request() -> Request {
    Request {
        component: "CompletionRequest",
        key: "completions",
        read: reader!(CompletionRequest::from_json),
        maps: &[],
        samples: vec![
            example(
                "A text that is continued",
                json!({"model": "default", "prompt": "The capital of France is", "max_tokens": 8}),
            ),
            example(
                "A text whose own tokens are scored",
                json!({"prompt": "The capital of France is Paris.", "max_tokens": 0, "echo": true, "logprobs": 1}),
            ),
            example(
                "Several prompts at once",
                json!({"prompt": ["Roses are", "Violets are"], "max_tokens": 4, "temperature": 0}),
            ),
            example(
                "A stream",
                json!({"prompt": "Once upon a time", "max_tokens": 8, "stream": true, "stream_options": {"include_usage": true}}),
            ),
            sample(json!({
                "prompt": [1, 2, 3],
                "response_format": {"type": "json_schema", "json_schema": {"name": "any", "schema": true}},
                "add_special_tokens": false,
            })),
            sample(json!({"prompt": "x", "structured_outputs": {"regex": "(Paris|Lyon)"}})),
            sample(json!({"prompt": "x", "response_format": {"type": "text"}})),
            sample(json!({"prompt": "x", "response_format": {"type": "json_object"}})),
        ],
    }
}

pub(super) fn score_request() -> Request {
    Request {
        component: "ScoreRequest",
        key: "score",
        read: reader!(ScoreRequest::from_json),
        maps: &[],
        samples: vec![
            example(
                "Two continuations of a text",
                json!({"model": "default", "query": "The capital of France is", "items": [" Paris.", " Lyon."]}),
            ),
            example(
                "Two replies to a question",
                json!({
                    "messages": [{"role": "user", "content": "Is Paris in France?"}],
                    "items": ["Yes", "No"],
                }),
            ),
            sample(json!({
                "messages": conversation(),
                "tools": [tool()],
                "items": ["Yes"],
            })),
        ],
    }
}
