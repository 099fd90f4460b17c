//! Mixed chat bodies, made from a seed.

use serde_json::{Value, json};

use crate::random::Random;

const WORDS: [&str; 20] = [
    "name", "three", "colours", "of", "a", "list", "and", "say", "why", "the", "number", "is",
    "large", "or", "small", "in", "one", "word", "please", "again",
];

/// One call.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) body: Value,
    /// Pieces of the reply after which the client hangs up.
    pub(super) hangs_up_after: Option<usize>,
}

/// Makes calls.
pub(super) struct Calls {
    seed: u64,
    num_calls: u64,
}

impl Calls {
    /// Calls of `seed`, so many different ones.
    pub(super) fn new(seed: u64, num_calls: u64) -> Self {
        Self {
            seed,
            num_calls: num_calls.max(1),
        }
    }

    /// Call `index`: always the same one.
    pub(super) fn call(&self, index: u64) -> Call {
        let mut random = Random::of(self.seed, index);
        let mut body = self.body(random.next_u64() % self.num_calls);
        if random.one_in(4) {
            body["cache_salt"] = json!(*random.pick(&["a", "b"]));
        }
        let hangs_up = random.one_in(10);
        if hangs_up || random.one_in(2) {
            body["stream"] = json!(true);
            if random.one_in(2) {
                body["stream_options"] = json!({"include_usage": true});
            }
        }
        Call {
            body,
            hangs_up_after: hangs_up.then(|| random.below(6)),
        }
    }

    fn body(&self, which: u64) -> Value {
        let mut random = Random::of(!self.seed, which);
        let mut messages = Vec::new();
        if random.one_in(3) {
            messages.push(json!({"role": "system", "content": "You answer in one line."}));
        }
        for _ in 0..random.below(2) {
            messages.push(json!({"role": "user", "content": sentence(&mut random, 12)}));
            messages.push(json!({"role": "assistant", "content": sentence(&mut random, 8)}));
        }
        let longest = *random.pick(&[4, 8, 8, 20, 60]);
        messages.push(json!({"role": "user", "content": sentence(&mut random, longest)}));
        let mut body = json!({
            "messages": messages,
            "seed": random.next_u64() >> 12,
            "max_tokens": random.between(1, 16),
            "temperature": *random.pick(&[0.0, 0.0, 0.5, 1.0, 1.6]),
        });
        let mut set = |is_set: bool, name: &str, value: Value| {
            if is_set {
                body[name] = value;
            }
        };
        let has_logprobs = !random.one_in(5);
        set(has_logprobs, "logprobs", json!(true));
        set(has_logprobs, "top_logprobs", json!(random.below(21)));
        set(
            has_logprobs && random.one_in(3),
            "logprobs_mode",
            json!("processed"),
        );
        set(
            has_logprobs && random.one_in(3),
            "logprobs_end",
            json!(true),
        );
        set(random.one_in(3), "return_token_ids", json!(true));
        set(random.one_in(5), "n", json!(random.between(2, 4)));
        set(random.one_in(4), "top_p", json!(0.8));
        set(random.one_in(4), "top_k", json!(random.between(1, 40)));
        set(random.one_in(5), "min_p", json!(0.1));
        set(random.one_in(4), "presence_penalty", json!(0.6));
        set(random.one_in(4), "frequency_penalty", json!(-0.4));
        set(random.one_in(4), "repetition_penalty", json!(1.3));
        set(random.one_in(5), "logit_bias", json!({"5": 3.5, "40": -8}));
        set(random.one_in(4), "stop", json!(["e", ".\n"]));
        let schema = json!({
            "type": "object",
            "properties": {"n": {"type": "integer"}, "ok": {"type": "boolean"}},
            "required": ["n", "ok"],
            "additionalProperties": false,
        });
        set(
            random.one_in(8),
            "response_format",
            json!({"type": "json_schema", "json_schema": {"name": "s", "schema": schema}}),
        );
        body
    }
}

fn sentence(random: &mut Random, longest: usize) -> String {
    let words: Vec<&str> = (0..random.between(1, longest))
        .map(|_| *random.pick(&WORDS))
        .collect();
    words.join(" ")
}
