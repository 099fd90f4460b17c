//! Words of conversations and tools in the shape of chat completions.

use assay_api::openai::message::MAX_MESSAGES;
use assay_api::openai::tools::{MAX_NAME_BYTES, MAX_TOOLS};
use serde_json::{Value, json};

use super::{Table, says};
use crate::request_schema::RECORDED;

/// A text, or parts of one, which were recorded.
pub(super) fn text_or_parts() -> Value {
    json!({"anyOf": [
        {"type": "string"},
        {"type": "array", "items": {RECORDED: "[]"}},
    ]})
}

/// The name of a function or a schema.
pub(super) fn plain_name() -> Value {
    json!({"pattern": format!("^[A-Za-z0-9_-]{{1,{MAX_NAME_BYTES}}}$")})
}

/// Arrays of messages.
pub(super) fn messages() -> Value {
    json!({"items": {RECORDED: "[]"}, "minItems": 1, "maxItems": MAX_MESSAGES})
}

pub(super) fn table() -> Table {
    vec![
        (
            "messages",
            says("The conversation so far.").schema(messages()),
        ),
        ("messages[].role", says("Whose message it is.")),
        (
            "messages[].content",
            says("What it says; absent is empty.").schema(text_or_parts()),
        ),
        ("messages[].content[].type", says("Parts are text only.")),
        ("messages[].content[].text", says("The text.")),
        ("messages[].name", says("The author's name.")),
        (
            "messages[].tool_call_id",
            says("The call that a tool's message answers."),
        ),
        (
            "messages[].tool_calls",
            says("The calls that the assistant made; of its own messages only."),
        ),
        (
            "messages[].tool_calls[].id",
            says("The call's name in the conversation."),
        ),
        ("messages[].tool_calls[].type", says("Always `function`.")),
        ("messages[].tool_calls[].function", says("What was called.")),
        (
            "messages[].tool_calls[].function.name",
            says("The tool's name."),
        ),
        (
            "messages[].tool_calls[].function.arguments",
            says("JSON text."),
        ),
        (
            "messages[].reasoning_content",
            says("What the assistant thought; of its own messages only."),
        ),
        (
            "messages[].reasoning",
            says("Another name of `reasoning_content`."),
        ),
        (
            "messages[].annotations",
            says("As replies carry it: only an empty one is accepted.")
                .schema(json!({"maxItems": 0})),
        ),
        (
            "chat_template_kwargs",
            says("Variables for the model's chat template, such as `enable_thinking`; none of those that the server sets.")
                .default(json!({}))
                .schema(json!({"additionalProperties": true}))
                .opaque(),
        ),
        (
            "tools",
            says("Functions that the model may call, no two of one name.")
                .default(json!([]))
                .schema(json!({"items": {RECORDED: "[]"}, "maxItems": MAX_TOOLS})),
        ),
        ("tools[].type", says("Always `function`.")),
        ("tools[].function", says("The function.")),
        (
            "tools[].function.name",
            says("Its name.").schema(plain_name()),
        ),
        (
            "tools[].function.description",
            says("What it does, for the model."),
        ),
        (
            "tools[].function.parameters",
            says("A JSON Schema of its arguments; absent takes any object.")
                .schema(json!({"additionalProperties": true}))
                .opaque(),
        ),
        (
            "tools[].function.strict",
            says("Whether arguments are made valid against `parameters`. Those of forced calls always are."),
        ),
        (
            "tool_choice",
            says("`auto`: the model may call. `none`: it may not. `required`: it calls one at least. An object: it calls this one.")
                .default(json!("auto"))
                .schema(json!({"anyOf": [
                    {"type": "string", "enum": ["auto", "none", "required"]},
                    {"$ref": "#/components/schemas/NamedToolChoice"},
                ]}))
                .opaque(),
        ),
        (
            "parallel_tool_calls",
            says("False: the model calls one tool at most.").default(json!(true)),
        ),
        (
            "reasoning_effort",
            says("How hard the model thinks, as its template understands it; `none` turns reasoning off."),
        ),
        (
            "thinking_token_budget",
            says("Most tokens of reasoning; then it is closed by force."),
        ),
        (
            "logprobs_tool_calls",
            says("Whether the tokens of tool calls are reported too; needs `logprobs`.")
                .default(json!(false)),
        ),
    ]
}
