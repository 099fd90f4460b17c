//! Words of completions, scores and the tokenizer's routes.

use assay_api::openai::completion_request::MAX_PROMPTS;
use assay_api::score::MAX_ITEMS;
use serde_json::{Value, json};

use super::generation::token_ids;
use super::{Table, says};

/// A text or its tokens.
fn prompt() -> Value {
    let mut ids = token_ids();
    ids["minItems"] = json!(1);
    json!({"anyOf": [{"type": "string"}, ids]})
}

pub(super) fn table() -> Table {
    let mut ids = token_ids();
    ids["minItems"] = json!(1);
    vec![
        (
            "completions|prompt",
            says("A text or token ids, or several of them.").schema(json!({"anyOf": [
                {"type": "string"},
                ids,
                {"type": "array", "items": prompt(), "minItems": 1, "maxItems": MAX_PROMPTS},
            ]})),
        ),
        (
            "add_special_tokens",
            says("Whether a text gets the model's beginning token.").default(json!(true)),
        ),
        (
            "tokenize|add_special_tokens",
            says("Whether a `prompt` gets the model's beginning token, true by default; of a conversation never true: its template writes it."),
        ),
        (
            "completions|echo",
            says("Whether replies begin with their prompt, scores included.").default(json!(false)),
        ),
        (
            "completions|logprobs_content",
            says("With `logprobs`: whether the scores come as `content` besides, in the shape that chat completions have.")
                .default(json!(false)),
        ),
        (
            "completions|best_of",
            says("Must equal `n`: replies are not ranked against each other."),
        ),
        (
            "score|query",
            says("What stands before every item; a conversation in `messages` may stand in its place.")
                .schema(prompt()),
        ),
        (
            "score|items",
            says("The continuations to score.")
                .schema(json!({"items": prompt(), "minItems": 1, "maxItems": MAX_ITEMS})),
        ),
        (
            "tokenize|prompt",
            says("A text; a conversation in `messages` may stand in its place."),
        ),
        (
            "tokenize|return_token_strs",
            says("Whether texts of the tokens are listed.").default(json!(false)),
        ),
        (
            "tokenize|with_pieces",
            says("Whether texts and bytes of the tokens are listed.").default(json!(false)),
        ),
        (
            "add_generation_prompt",
            says("Whether the model's turn is opened.").default(json!(true)),
        ),
        (
            "detokenize|tokens",
            says("Token ids.").schema(json!({"items": token_ids()["items"]})),
        ),
    ]
}
