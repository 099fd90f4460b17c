//! Words of typed decisions.

use assay_api::decisions::MAX_QUESTIONS;
use assay_api::decisions::question::{NUM_CHOICES, NUM_LEVELS};
use serde_json::{Value, json};

use super::chat::text_or_parts;
use super::{Table, says};
use crate::request_schema::RECORDED;

/// A text, or a structure that the model reads as compact JSON.
fn text_or_json() -> Value {
    json!({"type": ["string", "object", "array"]})
}

pub(super) fn table() -> Table {
    let side = json!({"type": ["string", "object", "array", "null"]});
    vec![
        (
            "decisions|input",
            says("What is asked about: a text, or messages, tool calls and tool outputs.").schema(
                json!({"anyOf": [
                    {"type": "string"},
                    {"type": "array", "items": {RECORDED: "[]"}, "minItems": 1, "maxItems": 4_096},
                ]}),
            ),
        ),
        ("decisions|input[].type", says("What the item is.")),
        ("decisions|input[].role", says("Whose message it is.")),
        (
            "decisions|input[].content",
            says("What it says.").schema(text_or_parts()),
        ),
        ("decisions|input[].content[].type", says("What the part is.")),
        ("decisions|input[].content[].text", says("The text.")),
        ("decisions|input[].content[].refusal", says("The text.")),
        (
            "decisions|input[].content[].data",
            says("Data, which the model reads as compact JSON.")
                .schema(json!({"type": ["object", "array"]})),
        ),
        ("decisions|input[].name", says("The tool's name.")),
        ("decisions|input[].arguments", says("JSON text.")),
        ("decisions|input[].input", says("What the tool was given.")),
        (
            "decisions|input[].call_id",
            says("The call's name in the conversation."),
        ),
        (
            "decisions|input[].output",
            says("What the tool answered.")
                .schema(json!({"anyOf": [{"type": "string"}, {"type": "array", "items": {
                    "$ref": "#/components/schemas/DecisionContentPart",
                }}]}))
                .opaque(),
        ),
        (
            "decisions|questions",
            says("The questions, each answered by itself.").schema(
                json!({"items": {RECORDED: "[]"}, "minItems": 1, "maxItems": MAX_QUESTIONS}),
            ),
        ),
        (
            "decisions|questions[].type",
            says("`predicate`: yes or no. `choice`: one of several. `score`: a level."),
        ),
        (
            "decisions|questions[].name",
            says("Repeated in the answer; the model does not see it."),
        ),
        (
            "decisions|questions[].instructions",
            says("What is asked: a text or parts.").schema(json!({"anyOf": [
                {"type": "string"},
                {"type": "array", "items": {"$ref": "#/components/schemas/DecisionContentPart"}},
            ]}))
            .opaque(),
        ),
        (
            "decisions|questions[].choices",
            says("What may be answered, told apart by its words.").schema(json!({
                "items": {RECORDED: "[]"}, "minItems": NUM_CHOICES.start(), "maxItems": NUM_CHOICES.end(),
            })),
        ),
        (
            "decisions|questions[].choices[].value",
            says("The answer.").schema(json!({"type": ["string", "boolean"]})),
        ),
        (
            "decisions|questions[].choices[].description",
            says("When it applies."),
        ),
        (
            "decisions|questions[].levels",
            says("The levels, the lowest first.").schema(json!({
                "items": {RECORDED: "[]"}, "minItems": NUM_LEVELS.start(), "maxItems": NUM_LEVELS.end(),
            })),
        ),
        (
            "decisions|questions[].levels[].label",
            says("What the level is called."),
        ),
        (
            "decisions|questions[].levels[].description",
            says("When it applies."),
        ),
        (
            "readout",
            says("What the model answers with: the caller's words, or short codes that stand for them.")
                .default(json!("label")),
        ),
        ("debias", says("What evens out the order of the options.")),
        (
            "debias.rotations",
            says("Orders of the options that are read and combined.").default(json!(1)),
        ),
        (
            "receipt",
            says("Whether the reply carries its receipt: a sealed record that can be computed again.")
                .default(json!(false)),
        ),
        (
            "prior",
            says("`content_free` divides by what the same question answers about an empty state."),
        ),
        (
            "min_label_mass",
            says("Refuses a question whose answers together are less likely than this."),
        ),
        (
            "diagnostics",
            says("Whether each label's tokens and their log-probabilities are reported.")
                .default(json!(false)),
        ),
        (
            "state",
            says("What is asked about: a text, or a structure that the model reads as compact JSON.")
                .schema(text_or_json()),
        ),
        (
            "systemone|questions",
            says("The questions by the caller's ids, each answered by itself.").schema(json!({
                "type": "object",
                "additionalProperties": {RECORDED: ".{name}"},
                "minProperties": 1,
                "maxProperties": MAX_QUESTIONS,
            })),
        ),
        (
            "systemone|questions.{name}.type",
            says("`noul`: yes or no. `choice`: one of several. `score`: a level."),
        ),
        (
            "systemone|questions.{name}.instructions",
            says("What is asked.").schema(text_or_json()),
        ),
        (
            "systemone|questions.{name}<noul>.criteria",
            says("What counts as yes and as no.").schema(json!({
                "type": "object",
                "properties": {"true": side, "false": side},
                "additionalProperties": false,
            }))
            .opaque(),
        ),
        (
            "systemone|questions.{name}<choice>.criteria",
            says("What may be answered, each with when it applies or null.").schema(json!({
                "type": "object",
                "additionalProperties": {"type": ["string", "object", "array", "null"]},
                "minProperties": NUM_CHOICES.start(),
                "maxProperties": NUM_CHOICES.end(),
            })),
        ),
        (
            "systemone|questions.{name}<score>.criteria",
            says("The levels, the lowest first.").schema(json!({
                "type": "array",
                "items": text_or_json(),
                "minItems": NUM_LEVELS.start(),
                "maxItems": NUM_LEVELS.end(),
            })),
        ),
        (
            "systemone|assets",
            says("Not supported: only an empty object is accepted.")
                .schema(json!({"type": "object", "maxProperties": 0})),
        ),
        (
            "decide|messages",
            says("What is asked about, in place of `state`: a text, or messages, tool calls and tool outputs.")
                .schema(json!({"anyOf": [
                    {"type": "string"},
                    {"type": "array", "items": {"$ref": "#/components/schemas/DecisionInputItem"}, "minItems": 1, "maxItems": 4_096},
                ]}))
                .opaque(),
        ),
        (
            "decide|instructions",
            says("Stands before what the schema says of itself."),
        ),
        (
            "decide|schema",
            says("A JSON Schema whose most likely instance is the answer. Every keyword must be one that is honoured in full.")
                .schema(json!({"type": "object"}))
                .opaque(),
        ),
        ("decide|search", says("How instances are sought.")),
        (
            "decide|search.beams",
            says("Unfinished instances that are followed at a time.").default(json!(8)),
        ),
        (
            "replay|receipt",
            says("A receipt as a reply carried it.")
                .schema(json!({"type": "object"}))
                .opaque(),
        ),
    ]
}
