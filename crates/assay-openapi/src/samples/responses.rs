//! `POST /v1/responses`.

use assay_api::openai::responses_request::ResponsesRequest;
use serde_json::json;

use super::reader;
use crate::request::{Request, example, sample};

pub(super) fn request() -> Request {
    Request {
        component: "ResponsesRequest",
        key: "responses",
        read: reader!(ResponsesRequest::from_json),
        maps: &[],
        samples: vec![
            example(
                "A question",
                json!({"model": "default", "input": "Name the capital of France.", "max_output_tokens": 16}),
            ),
            example(
                "Every token with its log-probability",
                json!({
                    "input": "Name the capital of France.",
                    "max_output_tokens": 8,
                    "temperature": 0,
                    "include": ["message.output_text.logprobs"],
                    "top_logprobs": 2,
                }),
            ),
            example(
                "A stream",
                json!({"input": "Name the capital of France.", "max_output_tokens": 8, "stream": true}),
            ),
            sample(json!({
                "instructions": "Be brief.",
                "input": [
                    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "The weather?"}]},
                    {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "Which city?"}]},
                    {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": "{}"},
                    {"type": "function_call_output", "call_id": "call_1", "output": [
                        {"type": "input_text", "text": "rain"},
                        {"type": "output_text", "text": "and"},
                        {"type": "text", "text": "wind"},
                    ]},
                    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Rain."}]},
                    {"type": "message", "role": "user", "content": [{"type": "text", "text": "Thanks."}]},
                ],
                "tools": [{"type": "function", "name": "get_weather", "parameters": {"type": "object"}}],
                "text": {"format": {"type": "json_object"}},
                "reasoning": {"effort": "low"},
                "structured_outputs": null,
            })),
            sample(json!({"input": "x", "structured_outputs": {"regex": "(Paris|Lyon)"}})),
        ],
    }
}
