//! Words of `POST /v1/messages`.

use assay_api::openai::generation::{MAX_STOP_BYTES, MAX_STOPS};
use serde_json::json;

use super::chat::{plain_name, text_or_parts};
use super::{Table, says};

pub(super) fn table() -> Table {
    vec![
        (
            "anthropic|output_config",
            says("How hard the model thinks, and the form of its text."),
        ),
        (
            "anthropic|output_config.effort",
            says("How hard it thinks."),
        ),
        (
            "anthropic|output_config.format",
            says("The form of the text."),
        ),
        (
            "anthropic|output_config.format.type",
            says("Always `json_schema`."),
        ),
        (
            "anthropic|output_config.format.schema",
            says("A JSON Schema, enforced in full or refused.")
                .schema(json!({"type": ["object", "boolean"]})),
        ),
        (
            "anthropic|stop_sequences",
            says("Strings that end the reply; they are not part of it.")
                .default(json!([]))
                .schema(json!({
                    "type": "array",
                    "items": {"type": "string", "minLength": 1, "maxLength": MAX_STOP_BYTES},
                    "maxItems": MAX_STOPS,
                })),
        ),
        (
            "anthropic|thinking",
            says("Whether the model thinks before it answers; off by default."),
        ),
        ("anthropic|thinking.type", says("Whether it thinks.")),
        (
            "anthropic|thinking.budget_tokens",
            says("Most tokens of thoughts; then they are closed by force."),
        ),
        (
            "anthropic|system",
            says("Instructions: a text or text blocks.").schema(text_or_parts()),
        ),
        ("anthropic|system[].type", says("Blocks are text only.")),
        ("anthropic|system[].text", says("The text.")),
        (
            "anthropic|messages",
            says("The conversation so far; the last message is the user's.")
                .schema(super::chat::messages()),
        ),
        (
            "anthropic|messages[].content",
            says("A text or blocks.").schema(text_or_parts()),
        ),
        (
            "anthropic|messages[].content[].type",
            says("What the block is."),
        ),
        ("anthropic|messages[].content[].text", says("The text.")),
        (
            "anthropic|messages[].content[].thinking",
            says("What the model thought; of the assistant's turns."),
        ),
        (
            "anthropic|messages[].content[].id",
            says("The call's name in the conversation."),
        ),
        (
            "anthropic|messages[].content[].name",
            says("The tool's name."),
        ),
        (
            "anthropic|messages[].content[].input",
            says("The call's arguments.").schema(json!({"type": "object"})),
        ),
        (
            "anthropic|messages[].content[].tool_use_id",
            says("The call that is answered; in the user's turns."),
        ),
        (
            "anthropic|messages[].content[].is_error",
            says("Accepted; the model sees the answer alone."),
        ),
        (
            "anthropic|messages[].content[].content",
            says("What the tool answered.").schema(text_or_parts()),
        ),
        (
            "anthropic|messages[].content[].content[].type",
            says("Blocks are text only."),
        ),
        (
            "anthropic|messages[].content[].content[].text",
            says("The text."),
        ),
        ("anthropic|tools[].type", says("Always `custom`.")),
        (
            "anthropic|tools[].name",
            says("The tool's name.").schema(plain_name()),
        ),
        (
            "anthropic|tools[].description",
            says("What it does, for the model."),
        ),
        (
            "anthropic|tools[].input_schema",
            says("A JSON Schema of its arguments.")
                .schema(json!({"additionalProperties": true}))
                .opaque(),
        ),
        (
            "anthropic|tools[].strict",
            says("Whether arguments are made valid against `input_schema`.").default(json!(false)),
        ),
        (
            "anthropic|tool_choice",
            says(
                "`auto`: the model may call. `any`: it calls one at least. `tool`: it calls the named one. `none`: it may not.",
            ),
        ),
        ("anthropic|tool_choice.type", says("How it may call.")),
        (
            "anthropic|tool_choice.name",
            says("The tool that it calls."),
        ),
        (
            "anthropic|tool_choice.disable_parallel_tool_use",
            says("True: the model calls one tool at most."),
        ),
    ]
}
