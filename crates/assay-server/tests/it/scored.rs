//! Asks for scores and reads them.

use serde_json::{Value, json};

use crate::world::with;

pub(crate) fn scored(body: Value, top_logprobs: u32) -> Value {
    with(
        body,
        json!({"logprobs": true, "top_logprobs": top_logprobs, "return_token_ids": true}),
    )
}

pub(crate) fn entries(reply: &Value) -> &Vec<Value> {
    reply["choices"][0]["logprobs"]["content"]
        .as_array()
        .expect("entries")
}

pub(crate) fn bits(value: &Value) -> u64 {
    value.as_f64().expect("a number").to_bits()
}
