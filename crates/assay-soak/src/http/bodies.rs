//! Mixed calls of all routes that compute, made from a seed.

use serde_json::{Value, json};

use crate::random::Random;

const WORDS: [&str; 20] = [
    "name", "three", "colours", "of", "a", "list", "and", "say", "why", "the", "number", "is",
    "large", "or", "small", "in", "one", "word", "please", "again",
];

const CHAT: &str = "/v1/chat/completions";
const COMPLETIONS: &str = "/v1/completions";
const SCORE: &str = "/v1/score";

/// One call.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) path: &'static str,
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
        let (path, mut body) = self.body(random.next_u64() % self.num_calls);
        if random.one_in(4) {
            body["cache_salt"] = json!(*random.pick(&["a", "b"]));
        }
        // A stream has no place for them.
        let may_stream = path != SCORE && body.get("prompt_logprobs").is_none();
        let hangs_up = may_stream && random.one_in(10);
        if hangs_up || may_stream && random.one_in(2) {
            body["stream"] = json!(true);
            if random.one_in(2) {
                body["stream_options"] = json!({"include_usage": true});
            }
        }
        Call {
            path,
            body,
            hangs_up_after: hangs_up.then(|| random.below(6)),
        }
    }

    fn body(&self, which: u64) -> (&'static str, Value) {
        let mut random = Random::of(!self.seed, which);
        match random.below(8) {
            0 => (SCORE, score(&mut random)),
            1..=3 => (COMPLETIONS, completion(&mut random)),
            _ => (CHAT, chat(&mut random)),
        }
    }
}

/// Sets what a draw says is set.
fn set(body: &mut Value, is_set: bool, name: &str, value: Value) {
    if is_set {
        body[name] = value;
    }
}

fn score(random: &mut Random) -> Value {
    let items: Vec<String> = (0..random.between(1, 4))
        .map(|_| format!(" {}", sentence(random, 3)))
        .collect();
    json!({"query": sentence(random, 30), "items": items})
}

fn completion(random: &mut Random) -> Value {
    let prompts: Vec<String> = (0..random.between(1, 3))
        .map(|_| sentence(random, 30))
        .collect();
    let mut body = json!({"prompt": prompts});
    generation(random, &mut body);
    let echo = random.one_in(3);
    set(&mut body, echo, "echo", json!(true));
    set(&mut body, echo && random.one_in(2), "max_tokens", json!(0));
    set(
        &mut body,
        !random.one_in(4),
        "logprobs",
        json!(random.below(21)),
    );
    set(
        &mut body,
        random.one_in(4),
        "prompt_logprobs",
        json!(random.below(21)),
    );
    // An echo alone has one choice.
    set(&mut body, echo, "n", json!(1));
    body
}

fn chat(random: &mut Random) -> Value {
    let mut messages = Vec::new();
    if random.one_in(3) {
        messages.push(json!({"role": "system", "content": "You answer in one line."}));
    }
    for _ in 0..random.below(2) {
        messages.push(json!({"role": "user", "content": sentence(random, 12)}));
        messages.push(json!({"role": "assistant", "content": sentence(random, 8)}));
    }
    let longest = *random.pick(&[4, 8, 8, 20, 60]);
    messages.push(json!({"role": "user", "content": sentence(random, longest)}));
    let mut body = json!({"messages": messages});
    generation(random, &mut body);
    let has_logprobs = !random.one_in(5);
    set(&mut body, has_logprobs, "logprobs", json!(true));
    set(
        &mut body,
        has_logprobs,
        "top_logprobs",
        json!(random.below(21)),
    );
    set(
        &mut body,
        has_logprobs && random.one_in(3),
        "logprobs_mode",
        json!("processed"),
    );
    set(
        &mut body,
        has_logprobs && random.one_in(3),
        "logprobs_end",
        json!(true),
    );
    set(
        &mut body,
        random.one_in(6),
        "prompt_logprobs",
        json!(random.below(21)),
    );
    let schema = json!({
        "type": "object",
        "properties": {"n": {"type": "integer"}, "ok": {"type": "boolean"}},
        "required": ["n", "ok"],
        "additionalProperties": false,
    });
    let format = json!({"type": "json_schema", "json_schema": {"name": "s", "schema": schema}});
    set(&mut body, random.one_in(8), "response_format", format);
    body
}

/// What chat and completions share.
fn generation(random: &mut Random, body: &mut Value) {
    body["seed"] = json!(random.next_u64() >> 12);
    body["max_tokens"] = json!(random.between(1, 16));
    body["temperature"] = json!(*random.pick(&[0.0, 0.0, 0.5, 1.0, 1.6]));
    set(body, random.one_in(3), "return_token_ids", json!(true));
    set(body, random.one_in(5), "n", json!(random.between(2, 4)));
    set(body, random.one_in(4), "top_p", json!(0.8));
    set(
        body,
        random.one_in(4),
        "top_k",
        json!(random.between(1, 40)),
    );
    set(body, random.one_in(5), "min_p", json!(0.1));
    set(body, random.one_in(4), "presence_penalty", json!(0.6));
    set(body, random.one_in(4), "frequency_penalty", json!(-0.4));
    set(body, random.one_in(4), "repetition_penalty", json!(1.3));
    set(
        body,
        random.one_in(5),
        "logit_bias",
        json!({"5": 3.5, "40": -8}),
    );
    set(body, random.one_in(4), "stop", json!(["e", ".\n"]));
}

fn sentence(random: &mut Random, longest: usize) -> String {
    let words: Vec<&str> = (0..random.between(1, longest))
        .map(|_| *random.pick(&WORDS))
        .collect();
    words.join(" ")
}
