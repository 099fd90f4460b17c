//! Text completions: one check of all that holds for every reply, and the replies of everyday.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::stream::{comparable, counts};
use crate::vocab;
use crate::world::{COMPLETIONS, World, order, with};

/// A greedy request for exactly `text`, behind a short prompt.
pub(crate) fn complete(text: &str) -> Value {
    let ids = vocab::encode(text.as_bytes());
    complete_prompt(&json!(format!("{}<|go|>", order(&ids))))
}

/// A greedy request to continue `prompt`.
pub(crate) fn complete_prompt(prompt: &Value) -> Value {
    json!({"prompt": prompt, "temperature": 0, "seed": 7})
}

/// Sends a request unstreamed and streamed, checks both ways to be the same and every choice to be sound.
pub(crate) async fn check_completion(world: &World, body: &Value) -> Value {
    let answer = world.post_to(COMPLETIONS, body).await;
    let whole = comparable(answer.expect_status(StatusCode::OK).json());
    assert_eq!(whole["object"], "text_completion", "{whole}");
    for (index, choice) in list(&whole["choices"]).iter().enumerate() {
        assert_eq!(choice["index"], json!(index), "choices come in order");
        check_choice(body, choice);
    }
    if body.get("prompt_logprobs").is_none() {
        let more = json!({"stream": true, "stream_options": {"include_usage": true}});
        let answer = world.post_to(COMPLETIONS, &with(body.clone(), more)).await;
        let chunks = answer.expect_status(StatusCode::OK).data();
        let collected = comparable(collect(&chunks, &whole));
        assert_eq!(
            collected["choices"].to_string(),
            whole["choices"].to_string(),
            "o3: {body}"
        );
        assert_eq!(counts(&collected), counts(&whole), "{body}");
    }
    whole
}

/// What holds for the arrays of any choice.
fn check_choice(body: &Value, choice: &Value) {
    assert!(choice["finish_reason"].is_string(), "{choice}");
    let Some(asked) = body.get("logprobs").and_then(Value::as_u64) else {
        assert_eq!(choice["logprobs"], Value::Null, "o5: {choice}");
        return;
    };
    let is_echoed = body["echo"] == true;
    let is_named = ["allowed_token_ids", "logprob_token_ids"]
        .iter()
        .any(|name| body.get(name).is_some());
    let has_id_texts = body["return_tokens_as_token_ids"] == true;
    let logprobs = &choice["logprobs"];
    let tokens = list(&logprobs["tokens"]);
    for name in ["token_logprobs", "top_logprobs", "text_offset"] {
        assert_eq!(
            list(&logprobs[name]).len(),
            tokens.len(),
            "{name}: {choice}"
        );
    }
    if !has_id_texts {
        let spelled: String = tokens
            .iter()
            .map(|token| token.as_str().expect("text"))
            .collect();
        assert_eq!(spelled, choice["text"], "s1: {choice}");
    }
    for index in 0..tokens.len() {
        let value = &logprobs["token_logprobs"][index];
        let top = &logprobs["top_logprobs"][index];
        let is_first = is_echoed && index == 0;
        assert_eq!(
            value.is_null(),
            is_first,
            "r10: only the first is null: {choice}"
        );
        assert_eq!(top.is_null(), is_first, "r10: {choice}");
        let Some(top) = top.as_object() else {
            continue;
        };
        let values: Vec<f64> = top
            .values()
            .map(|value| value.as_f64().expect("finite"))
            .collect();
        assert!(
            values.is_sorted_by(|a, b| a >= b),
            "most likely first: {choice}"
        );
        let own = value.as_f64().expect("finite");
        assert!(own <= 0.0 && own.is_finite());
        if !is_named {
            let asked = usize::try_from(asked).expect("small");
            assert!(
                (asked.max(1)..=asked + 1).contains(&top.len()),
                "r11: {choice}"
            );
            let is_own = |value: &f64| value.to_bits() == own.to_bits();
            assert!(
                values.iter().any(is_own),
                "r11: the chosen token is listed: {choice}"
            );
        }
        if index + 1 < tokens.len() && !has_id_texts {
            let offset = |index: usize| {
                let offset = logprobs["text_offset"][index].as_u64();
                usize::try_from(offset.expect("a count")).expect("small")
            };
            let num_chars = tokens[index].as_str().expect("text").chars().count();
            assert_eq!(
                offset(index + 1),
                offset(index) + num_chars,
                "fault 75: {choice}"
            );
        }
    }
    if is_echoed && !tokens.is_empty() {
        assert_eq!(logprobs["text_offset"][0], 0, "fault 73: {choice}");
    }
}

/// Adds up the chunks of a stream to the shape of `whole`.
fn collect(chunks: &[Value], whole: &Value) -> Value {
    let (last, pieces) = chunks.split_last().expect("chunks");
    assert_eq!(
        last["choices"],
        json!([]),
        "fault 165: the usage comes alone"
    );
    let mut choices: Vec<Value> = list(&whole["choices"]).iter().map(blank).collect();
    for chunk in pieces {
        assert_eq!(chunk["object"], "text_completion");
        assert!(
            chunk["usage"].is_null() && chunk.get("usage").is_some(),
            "{chunk}"
        );
        for same in [
            "id",
            "created",
            "model",
            "system_fingerprint",
            "seed",
            "logprobs_mode",
        ] {
            assert_eq!(
                chunk.get(same),
                pieces[0].get(same),
                "{same} changed: {chunk}"
            );
        }
        let [piece] = &list(&chunk["choices"])[..] else {
            panic!("one piece of one choice: {chunk}");
        };
        let index = piece["index"]
            .as_u64()
            .and_then(|index| usize::try_from(index).ok());
        add(&mut choices[index.expect("an index")], piece);
    }
    let mut reply = whole.clone();
    reply["choices"] = choices.into();
    reply["usage"] = last["usage"].clone();
    reply
}

/// The choice without what chunks bring.
fn blank(choice: &Value) -> Value {
    let mut blank = choice.clone();
    blank["text"] = json!("");
    blank["finish_reason"] = Value::Null;
    blank["stop_reason"] = Value::Null;
    for name in ["tokens", "token_logprobs", "top_logprobs", "text_offset"] {
        if let Some(array) = blank["logprobs"].get_mut(name) {
            *array = json!([]);
        }
    }
    if let Some(ids) = blank.get_mut("token_ids") {
        *ids = json!([]);
    }
    blank
}

fn add(choice: &mut Value, piece: &Value) {
    assert!(
        choice["finish_reason"].is_null(),
        "a piece after the end: {piece}"
    );
    let text = piece["text"].as_str().expect("text");
    choice["text"] = json!(format!("{}{text}", choice["text"].as_str().expect("text")));
    if let Some(arrays) = piece["logprobs"].as_object() {
        for name in ["tokens", "token_logprobs", "top_logprobs", "text_offset"] {
            let more = list(&arrays[name]).clone();
            let all = choice["logprobs"][name].as_array_mut().expect("an array");
            all.extend(more);
        }
    }
    if let Some(ids) = piece.get("token_ids").and_then(Value::as_array) {
        choice["token_ids"]
            .as_array_mut()
            .expect("ids")
            .extend(ids.iter().cloned());
    }
    for name in ["finish_reason", "stop_reason"] {
        choice[name] = piece[name].clone();
    }
}

pub(crate) fn list(value: &Value) -> &Vec<Value> {
    value
        .as_array()
        .unwrap_or_else(|| panic!("not an array: {value}"))
}

#[tokio::test]
async fn fault_17_fault_23_fault_39_fault_74_completions_of_every_kind() {
    let world = World::new();
    let cases = [
        (complete("Hello, world"), "Hello, world", "stop"),
        (
            with(complete("abcSTOPdef"), json!({"stop": "STOP"})),
            "abc",
            "stop",
        ),
        (
            with(complete("aaab"), json!({"stop": ["aab"], "logprobs": 2})),
            "a",
            "stop",
        ),
        (
            with(complete("日本語 🙂!"), json!({"max_tokens": 40})),
            "日本語 🙂!",
            "stop",
        ),
        (
            with(complete("🙂🙂"), json!({"max_tokens": 6})),
            "🙂",
            "length",
        ),
        (
            with(complete("abc"), json!({"max_tokens": 2})),
            "ab",
            "length",
        ),
        (
            complete("a reply of more than sixteen tokens"),
            "a reply of more ",
            "length",
        ),
        (
            with(complete("all of it, to its end"), json!({"max_tokens": -1})),
            "all of it, to its end",
            "stop",
        ),
    ];
    for (body, text, finish_reason) in cases {
        for more in [
            json!({}),
            json!({"logprobs": 0}),
            json!({"logprobs": 3, "return_token_ids": true, "logprobs_end": true}),
        ] {
            let body = with(body.clone(), more);
            let reply = check_completion(&world, &body).await;
            let choice = &reply["choices"][0];
            assert_eq!(choice["text"], text, "{body}");
            assert_eq!(choice["finish_reason"], finish_reason, "{body}");
        }
    }
}

#[tokio::test]
async fn s4_the_ending_token_has_no_place_and_is_told_where_asked() {
    let world = World::new();
    let body = with(complete("ab"), json!({"logprobs": 1, "logprobs_end": true}));
    let reply = check_completion(&world, &body).await;
    let logprobs = &reply["choices"][0]["logprobs"];
    assert_eq!(logprobs["tokens"], json!(["a", "b"]));
    assert_eq!(logprobs["end"]["token"], "<|im_end|>");
    assert!(logprobs["end"]["logprob"].as_f64().expect("a value") < 0.0);
    let cut = with(body, json!({"max_tokens": 1}));
    let reply = check_completion(&world, &cut).await;
    assert_eq!(reply["choices"][0]["logprobs"]["end"], Value::Null);
}

#[tokio::test]
async fn r8_r10_batches_of_prompts_answer_in_order_each_as_alone() {
    let world = World::new();
    let texts = ["one", "the second", "日本", "4"];
    let prompts: Vec<String> = texts
        .iter()
        .map(|text| format!("{}<|go|>", order(&vocab::encode(text.as_bytes()))))
        .collect();
    let more = json!({"logprobs": 2, "return_token_ids": true, "n": 2});
    let batch = with(complete_prompt(&json!(prompts)), more.clone());
    let together = check_completion(&world, &batch).await;
    assert_eq!(list(&together["choices"]).len(), 8);
    let mut prompt_tokens = 0;
    for (index, prompt) in prompts.iter().enumerate() {
        let alone = with(complete_prompt(&json!(prompt)), more.clone());
        let alone = check_completion(&world, &alone).await;
        for choice in 0..2 {
            let mut own = alone["choices"][choice].clone();
            own["index"] = json!(index * 2 + choice);
            assert_eq!(own, together["choices"][index * 2 + choice]);
            assert_eq!(own["text"], texts[index]);
        }
        prompt_tokens += alone["usage"]["prompt_tokens"].as_u64().expect("a count");
    }
    assert_eq!(together["usage"]["prompt_tokens"], prompt_tokens);
}

#[tokio::test]
async fn fault_65_a_thousand_prompts_are_one_request() {
    let world = World::new();
    let prompts: Vec<Vec<u32>> = (0..1_024).map(|n| vec![n % 200, n / 200, 3]).collect();
    let body = with(
        complete_prompt(&json!(prompts)),
        json!({"max_tokens": 1, "logprobs": 1}),
    );
    let answer = world.post_to(COMPLETIONS, &body).await;
    let reply = answer.expect_status(StatusCode::OK).json();
    assert_eq!(list(&reply["choices"]).len(), 1_024);
    assert_eq!(reply["usage"]["prompt_tokens"], 3 * 1_024);
}

#[tokio::test]
async fn v6_a_row_that_is_no_number_fails_the_request() {
    let world = World::new();
    let ids = vocab::encode(b"abcd");
    let bad = complete_prompt(&json!([format!("{}#nan 2#<|go|>", order(&ids)), "fine"]));
    let bad = with(bad, json!({"logprobs": 1}));
    let answer = world.post_to(COMPLETIONS, &bad).await;
    let error = answer.error(StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(error["code"], "numerical_error");
    let again = complete("good");
    assert_eq!(
        check_completion(&world, &again).await["choices"][0]["text"],
        "good"
    );
}
