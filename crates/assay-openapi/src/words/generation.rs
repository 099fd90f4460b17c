//! Words of the fields by which replies are drawn and reported.

use assay_api::openai::generation::{
    MAX_CACHE_SALT_BYTES, MAX_NAMED_TOKENS, MAX_STOP_BYTES, MAX_STOPS, MAX_TOP_LOGPROBS,
};
use serde_json::{Value, json};

use super::{Table, says};

/// An array of token ids.
pub(super) fn token_ids() -> Value {
    json!({"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": u32::MAX}})
}

fn named_tokens() -> Value {
    json!({
        "items": {"type": "integer", "minimum": 0, "maximum": u32::MAX},
        "minItems": 1,
        "maxItems": MAX_NAMED_TOKENS,
        "uniqueItems": true,
    })
}

fn stop_string() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": MAX_STOP_BYTES})
}

pub(super) fn table() -> Table {
    vec![
        (
            "model",
            says(
                "The served model's name, an alias, or `default`; absent means the served model. Any other name is 404.",
            ),
        ),
        (
            "max_tokens",
            says(
                "Most tokens of the reply, as many as the context has room for by default. The older name of `max_completion_tokens`, which wins.",
            ),
        ),
        (
            "completions|max_tokens",
            says("Most tokens of a reply, 16 by default; -1 asks for all the room that the context has, 0 for none.")
                .schema(json!({"minimum": -1})),
        ),
        (
            "anthropic|max_tokens",
            says("Most tokens of the reply."),
        ),
        (
            "max_completion_tokens",
            says("Most tokens of the reply, reasoning included."),
        ),
        (
            "n",
            says("How many replies.").default(json!(1)),
        ),
        (
            "seed",
            says("Seed of the draws; drawn and reported where it is absent. The same request with the same seed gives the same reply, bit by bit."),
        ),
        (
            "stop",
            says("Strings that end the reply; they are not part of it.").schema(json!({"anyOf": [
                stop_string(),
                {"type": "array", "items": stop_string(), "maxItems": MAX_STOPS},
            ]})),
        ),
        (
            "temperature",
            says("0 takes the most likely token; 1 draws from the model's own distribution.")
                .default(json!(1.0)),
        ),
        (
            "top_p",
            says("Draws among the most likely tokens that have this probability together.")
                .default(json!(1.0)),
        ),
        (
            "top_k",
            says("Draws among this many most likely tokens; 0 and -1 among all."),
        ),
        (
            "min_p",
            says("Draws among tokens at least this likely, relative to the most likely one.")
                .default(json!(0.0)),
        ),
        (
            "presence_penalty",
            says("Subtracted once from the logit of every token of the reply so far.")
                .default(json!(0.0)),
        ),
        (
            "frequency_penalty",
            says("Subtracted from the logit of a token as often as it occurs in the reply so far.")
                .default(json!(0.0)),
        ),
        (
            "repetition_penalty",
            says("Divides positive logits of tokens seen so far and multiplies negative ones.")
                .default(json!(1.0)),
        ),
        (
            "logit_bias",
            says("Added to the logits of tokens, by their ids in plain decimal. Reported raw values stay untouched.")
                .schema(json!({
                    "propertyNames": {"pattern": "^(0|[1-9][0-9]*)$"},
                    "additionalProperties": {"type": "number", "minimum": -100, "maximum": 100},
                }))
                .opaque(),
        ),
        (
            "logprobs",
            says("Whether the reply's tokens are reported with their log-probabilities. A number is the older way to write `top_logprobs` at once.")
                .default(json!(false))
                .schema(json!({"anyOf": [
                    {"type": "boolean"},
                    {"type": "integer", "minimum": 0, "maximum": MAX_TOP_LOGPROBS},
                ]})),
        ),
        (
            "completions|logprobs",
            says("Reports the tokens with their log-probabilities, and this many most likely ones at each place."),
        ),
        (
            "top_logprobs",
            says("How many of the most likely tokens are reported at each place; needs `logprobs`."),
        ),
        (
            "logprobs_mode",
            says("`raw`: the model's untouched distribution. `processed`: the one that was drawn from, after temperature, penalties, biases, filters and constraints.")
                .default(json!("raw")),
        ),
        (
            "logprobs_end",
            says("Whether the token that ended the reply is reported, as `end`.")
                .default(json!(false)),
        ),
        (
            "allowed_token_ids",
            says("With `logprobs`: the reported distribution is over exactly these tokens, and `allowed_logprob` is what they have together. Nothing is masked.")
                .schema(named_tokens()),
        ),
        (
            "completions|allowed_token_ids",
            says("With `logprobs`: exactly these tokens are reported at every place, with their probability among all. Nothing is masked.")
                .schema(named_tokens()),
        ),
        (
            "logprob_token_ids",
            says("Another name of `allowed_token_ids`.").schema(named_tokens()),
        ),
        (
            "prompt_logprobs",
            says("Reports every token of the prompt with its log-probability, and this many most likely ones at each place; not with `stream`."),
        ),
        (
            "return_token_ids",
            says("Whether ids of prompt and reply are reported.").default(json!(false)),
        ),
        (
            "return_tokens_as_token_ids",
            says("Whether reported tokens are written `token_id:N`.").default(json!(false)),
        ),
        (
            "stream",
            says("Whether the reply is sent as server-sent events while it is made.")
                .default(json!(false)),
        ),
        (
            "stream_options",
            says("How the reply is streamed; needs `stream: true`."),
        ),
        (
            "stream_options.include_usage",
            says("Whether a last chunk carries the token counts.").default(json!(false)),
        ),
        (
            "stream_options.include_obfuscation",
            says("Not supported: only false is accepted.").schema(json!({"const": false})),
        ),
        (
            "stream_options.continuous_usage_stats",
            says("Not supported: only false is accepted.").schema(json!({"const": false})),
        ),
        (
            "cache_salt",
            says("Requests share what the prefix cache knows only with requests of the same salt.")
                .schema(json!({"minLength": 1, "maxLength": MAX_CACHE_SALT_BYTES})),
        ),
        (
            "response_format",
            says("The form of the reply. A schema that cannot be enforced in full is refused by keyword and path."),
        ),
        ("response_format.type", says("The form.")),
        (
            "response_format.json_schema",
            says("A schema that the reply is valid against, enforced whatever `strict` says."),
        ),
        (
            "response_format.json_schema.name",
            says("Its name.").schema(super::chat::plain_name()),
        ),
        (
            "response_format.json_schema.description",
            says("For people; the model does not see it."),
        ),
        (
            "response_format.json_schema.strict",
            says("Accepted: every schema is enforced."),
        ),
        (
            "response_format.json_schema.schema",
            says("A JSON Schema.").schema(json!({"type": ["object", "boolean"]})),
        ),
        (
            "structured_outputs",
            says("The form of the reply, by exactly one of these; not beside a `response_format` of its own."),
        ),
        (
            "structured_outputs.json",
            says("A JSON Schema, as it is or written out in a string.")
                .schema(json!({"type": ["object", "boolean", "string"]})),
        ),
        (
            "structured_outputs.regex",
            says("A regular expression that the whole reply matches."),
        ),
        (
            "structured_outputs.choice",
            says("The reply is one of these texts.").schema(json!({"items": {"type": "string"}})),
        ),
        (
            "structured_outputs.grammar",
            says("A grammar in llguidance's dialect of Lark."),
        ),
        (
            "structured_outputs.json_object",
            says("True: the reply is any JSON object."),
        ),
    ]
}
