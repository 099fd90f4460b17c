//! Words of `POST /v1/responses`.

use assay_api::openai::message::MAX_MESSAGES;
use serde_json::json;

use super::chat::{plain_name, text_or_parts};
use super::{Table, says};
use crate::request_schema::RECORDED;

pub(super) fn table() -> Table {
    let effort = json!({"type": ["string", "null"], "enum": ["none", "minimal", "low", "medium", "high", "xhigh", "max", null]});
    vec![
        (
            "responses|instructions",
            says("Stands before the input, as a message of the system."),
        ),
        (
            "responses|metadata",
            says("Repeated in the reply.").schema(json!({})),
        ),
        (
            "responses|input",
            says("A text, or the items of a conversation.").schema(json!({"anyOf": [
                {"type": "string"},
                {"type": "array", "items": {RECORDED: "[]"}, "minItems": 1, "maxItems": MAX_MESSAGES},
            ]})),
        ),
        ("responses|input[].type", says("What the item is.")),
        ("responses|input[].role", says("Whose message it is.")),
        (
            "responses|input[].content",
            says("What it says.").schema(text_or_parts()),
        ),
        (
            "responses|input[]<reasoning>.content",
            says("The thoughts of an earlier reply."),
        ),
        ("responses|input[].content[].type", says("Parts are text only.")),
        ("responses|input[].content[].text", says("The text.")),
        (
            "responses|input[].call_id",
            says("The call's name in the conversation."),
        ),
        ("responses|input[].name", says("The tool's name.")),
        ("responses|input[].arguments", says("JSON text.")),
        (
            "responses|input[].output",
            says("What the tool answered.").schema(text_or_parts()),
        ),
        ("responses|input[].output[].type", says("Parts are text only.")),
        ("responses|input[].output[].text", says("The text.")),
        (
            "responses|max_output_tokens",
            says("Most tokens of the reply, as many as the context has room for by default."),
        ),
        (
            "responses|text",
            says("The form of the reply.")
                .schema(json!({
                    "type": "object",
                    "properties": {
                        "format": {"anyOf": [
                            {"$ref": "#/components/schemas/ResponsesTextFormat"},
                            {"type": "null"},
                        ]},
                        "verbosity": {"enum": ["medium", null]},
                    },
                }))
                .opaque(),
        ),
        (
            "responses|include",
            says("`message.output_text.logprobs` reports the reply's tokens with their log-probabilities.")
                .default(json!([]))
                .schema(json!({"items": {"type": "string", "const": "message.output_text.logprobs"}})),
        ),
        (
            "responses|top_logprobs",
            says("How many of the most likely tokens are reported at each place; needs `include`."),
        ),
        (
            "responses|reasoning",
            says("How the model thinks.")
                .schema(json!({
                    "type": "object",
                    "properties": {"effort": effort, "summary": {}, "generate_summary": {}},
                }))
                .opaque(),
        ),
        ("responses|tools[].type", says("Always `function`.")),
        (
            "responses|tools[].name",
            says("The function's name.").schema(plain_name()),
        ),
        (
            "responses|tools[].description",
            says("What it does, for the model."),
        ),
        (
            "responses|tools[].parameters",
            says("A JSON Schema of its arguments; absent takes any object.")
                .schema(json!({"additionalProperties": true}))
                .opaque(),
        ),
        (
            "responses|tools[].strict",
            says("Whether arguments are made valid against `parameters`."),
        ),
    ]
}
