//! Streams: their shape, and that what they add up to is the unstreamed reply.

use axum::http::StatusCode;
use serde_json::{Map, Value, json};

use crate::vocab::{self, END};
use crate::world::{World, ask, ask_ids, ask_message, with};

/// Adds up the chunks of a stream, checking on the way what must hold for each of them.
#[track_caller]
pub(crate) fn collect(chunks: &[Value]) -> Value {
    let first = chunks.first().expect("a chunk");
    let mut choices: Vec<Map<String, Value>> = Vec::new();
    let mut usage = Value::Null;
    for chunk in chunks {
        assert_eq!(chunk["object"], "chat.completion.chunk", "{chunk}");
        for same in [
            "id",
            "created",
            "model",
            "system_fingerprint",
            "seed",
            "logprobs_mode",
        ] {
            assert_eq!(chunk.get(same), first.get(same), "{same} changed: {chunk}");
        }
        assert!(usage.is_null(), "a chunk after the usage chunk: {chunk}");
        let pieces = chunk["choices"].as_array().expect("choices");
        assert_eq!(
            pieces.is_empty(),
            chunk.get("usage").is_some_and(Value::is_object),
            "{chunk}"
        );
        if pieces.is_empty() {
            usage = chunk["usage"].clone();
        }
        for piece in pieces {
            add(&mut choices, piece);
        }
    }
    let choices = choices.into_iter().map(|choice| {
        assert!(
            choice.contains_key("finish_reason"),
            "never finished: {choice:?}"
        );
        Value::Object(in_order(choice))
    });
    let mut reply = first.clone();
    reply["object"] = json!("chat.completion");
    reply["choices"] = choices.collect();
    reply["usage"] = usage;
    reply
}

/// Members in the order of the unstreamed reply, so that texts can be compared.
fn in_order(mut choice: Map<String, Value>) -> Map<String, Value> {
    let names = [
        "index",
        "message",
        "logprobs",
        "finish_reason",
        "stop_reason",
        "prompt_token_ids",
        "token_ids",
    ];
    let members = names
        .into_iter()
        .filter_map(|name| choice.remove_entry(name))
        .collect();
    assert!(choice.is_empty(), "unknown members: {choice:?}");
    members
}

fn add(choices: &mut Vec<Map<String, Value>>, piece: &Value) {
    let index = piece["index"]
        .as_u64()
        .and_then(|index| usize::try_from(index).ok())
        .expect("an index");
    let delta = &piece["delta"];
    if choices.len() <= index {
        choices.resize_with(index + 1, Map::new);
    }
    let choice = &mut choices[index];
    if choice.is_empty() {
        assert_eq!(
            delta["role"], "assistant",
            "the first chunk of a choice names the role"
        );
        choice.insert("index".to_owned(), json!(index));
        let content = delta.get("content").unwrap_or(&Value::Null);
        choice.insert(
            "message".to_owned(),
            json!({"role": "assistant", "content": content, "refusal": null}),
        );
        choice.insert("logprobs".to_owned(), Value::Null);
    } else {
        assert!(delta.get("role").is_none(), "the role is named twice");
    }
    assert!(
        !choice.contains_key("finish_reason"),
        "a chunk after the end: {piece}"
    );
    let message = &mut choice["message"];
    for field in ["content", "reasoning_content"] {
        if let Some(more) = delta.get(field) {
            let text = message.get(field).and_then(Value::as_str).unwrap_or("");
            message[field] = json!(format!("{text}{}", more.as_str().expect("text")));
        }
    }
    if let Some(calls) = delta.get("tool_calls") {
        add_calls(message, calls.as_array().expect("calls"));
    }
    if let Some(logprobs) = piece["logprobs"].as_object() {
        for field in ["content", "reasoning_content"] {
            let Some(entries) = logprobs.get(field) else {
                continue;
            };
            let spelled: String = entries
                .as_array()
                .expect("entries")
                .iter()
                .map(|entry| entry["token"].as_str().expect("text"))
                .collect();
            let text = delta.get(field).and_then(Value::as_str).unwrap_or("");
            assert_eq!(
                spelled, text,
                "o3: the entries of a chunk spell its delta: {piece}"
            );
        }
        match &mut choice["logprobs"] {
            all @ Value::Null => *all = piece["logprobs"].clone(),
            all => {
                for field in ["content", "reasoning_content", "tool_calls"] {
                    let entries = logprobs.get(field).and_then(Value::as_array);
                    assert_eq!(entries.is_some(), all.get(field).is_some(), "{piece}");
                    if let Some(entries) = entries {
                        let all = all[field].as_array_mut().expect("entries");
                        all.extend(entries.iter().cloned());
                    }
                }
            }
        }
        if let Some(end) = logprobs.get("end") {
            choice["logprobs"]["end"] = end.clone();
        }
    }
    for list in ["token_ids", "prompt_token_ids"] {
        if let Some(ids) = piece.get(list).and_then(Value::as_array) {
            let all = choice.entry(list).or_insert_with(|| json!([]));
            all.as_array_mut().expect("ids").extend(ids.iter().cloned());
        }
    }
    if !piece["finish_reason"].is_null() {
        let stop_reason = piece.get("stop_reason").unwrap_or(&Value::Null);
        choice.insert("finish_reason".to_owned(), piece["finish_reason"].clone());
        choice.insert("stop_reason".to_owned(), stop_reason.clone());
    }
}

/// Puts the pieces of calls together, each of which names its call.
fn add_calls(message: &mut Value, pieces: &[Value]) {
    if message.get("tool_calls").is_none() {
        message["tool_calls"] = json!([]);
    }
    let calls = message["tool_calls"].as_array_mut().expect("calls");
    for piece in pieces {
        let index = piece["index"].as_u64().expect("an index");
        if usize::try_from(index).expect("small") == calls.len() {
            let mut call = piece.clone();
            call.as_object_mut()
                .expect("an object")
                .shift_remove("index");
            calls.push(call);
            continue;
        }
        assert!(
            piece.get("id").is_none() && piece.get("type").is_none(),
            "{piece}"
        );
        assert!(piece["function"].get("name").is_none(), "{piece}");
        let last = calls.last_mut().expect("a call");
        let text = last["function"]["arguments"].as_str().expect("text");
        let more = piece["function"]["arguments"].as_str().expect("text");
        last["function"]["arguments"] = json!(format!("{text}{more}"));
    }
}

/// A reply without what differs between two runs of one request.
pub(crate) fn comparable(mut reply: Value) -> Value {
    for name in ["id", "created"] {
        reply[name] = Value::Null;
    }
    let choices = reply["choices"].as_array_mut().into_iter().flatten();
    let calls = choices.filter_map(|choice| choice["message"].get_mut("tool_calls"));
    for call in calls.filter_map(Value::as_array_mut).flatten() {
        assert!(
            call["id"]
                .as_str()
                .is_some_and(|id| id.starts_with("call_"))
        );
        call["id"] = Value::Null;
    }
    reply
}

/// The token counts but for those that depend on who was there before: what came from the cache.
pub(crate) fn counts(reply: &Value) -> Value {
    let mut usage = reply["usage"].clone();
    usage["prompt_tokens_details"]["cached_tokens"] = Value::Null;
    usage
}

/// Sends a request both ways and compares all of it, the bits of every number included.
pub(crate) async fn check_streams_alike(world: &World, body: &Value) -> Value {
    let whole = comparable(world.reply(body).await);
    let options = json!({"stream_options": {"include_usage": true}});
    let body = with(body.clone(), json!({"stream": true}));
    let body = with(body, options);
    let answer = world.post(&body).await.expect_status(StatusCode::OK);
    let collected = comparable(collect(&answer.data()));
    assert_eq!(
        collected["choices"].to_string(),
        whole["choices"].to_string(),
        "{body}"
    );
    assert_eq!(counts(&collected), counts(&whole), "{body}");
    assert_eq!(collected["seed"], whole["seed"]);
    assert_eq!(collected.get("logprobs_mode"), whole.get("logprobs_mode"));
    whole
}

#[tokio::test]
async fn o3_fault_29_fault_38_a_collected_stream_is_the_unstreamed_reply() {
    let world = World::new();
    let emoji = [vec![256 + 9], vec![256 + 10], vec![0xff, 0xc3, 0x28]].concat();
    let scores = json!({"logprobs": true, "top_logprobs": 3, "logprobs_end": true, "return_token_ids": true});
    for body in [
        ask("Hello, world. 日本語 🙂 done"),
        ask_ids(&emoji),
        ask_ids(&[]),
        with(ask("abcSTOPdef"), json!({"stop": "STOP"})),
        with(ask("🙂🙂🙂"), json!({"max_tokens": 6})),
        with(
            ask_message("#flat 200#"),
            json!({"max_tokens": 50, "n": 4, "temperature": 1}),
        ),
    ] {
        let plain = check_streams_alike(&world, &body).await;
        let scored = check_streams_alike(&world, &with(body.clone(), scores.clone())).await;
        for (plain, scored) in std::iter::zip(
            plain["choices"].as_array().expect("choices"),
            scored["choices"].as_array().expect("choices"),
        ) {
            assert_eq!(
                plain["message"], scored["message"],
                "v4: scores change nothing"
            );
            assert_eq!(plain["finish_reason"], scored["finish_reason"]);
        }
        assert_eq!(
            plain["usage"]["completion_tokens"],
            scored["usage"]["completion_tokens"]
        );
    }
}

#[tokio::test]
async fn the_chunks_of_a_short_reply() {
    let world = World::new();
    let body = with(
        ask_ids(&[256, 257]),
        json!({"stream": true, "logprobs": true}),
    );
    let chunks = world.post(&body).await.data();
    let pieces: Vec<_> = chunks
        .iter()
        .map(|chunk| chunk["choices"][0].clone())
        .collect();
    assert_eq!(pieces.len(), 4, "{pieces:?}");
    assert_eq!(
        pieces[0]["delta"],
        json!({"role": "assistant", "content": ""})
    );
    assert_eq!(
        pieces[0]["logprobs"],
        json!({"content": [], "refusal": null})
    );
    assert_eq!(pieces[1]["delta"], json!({"content": "Hello"}));
    assert_eq!(pieces[1]["logprobs"]["content"][0]["token"], "Hello");
    assert_eq!(pieces[1]["finish_reason"], Value::Null);
    assert_eq!(pieces[2]["delta"], json!({"content": " world"}));
    assert_eq!(pieces[3]["delta"], json!({}));
    assert_eq!(pieces[3]["logprobs"], Value::Null);
    assert_eq!(pieces[3]["finish_reason"], "stop");
    assert!(
        chunks.iter().all(|chunk| chunk.get("usage").is_none()),
        "not asked for"
    );
}

#[tokio::test]
async fn fault_53_fault_57_fault_59_held_text_leaves_once_and_a_stop_never() {
    let world = World::new();
    let cases = [
        // Held as the begin of a stop, then set free.
        ("end en", vec!["enx"], "end en", "stop", Value::Null),
        (
            "ab beta gamma",
            vec!["beta gamma"],
            "ab ",
            "stop",
            json!("beta gamma"),
        ),
        ("one two", vec!["two", "tw"], "one ", "stop", json!("tw")),
        ("aaab", vec!["aab"], "a", "stop", json!("aab")),
        ("日本語です", vec!["本"], "日", "stop", json!("本")),
    ];
    for (text, stops, visible, reason, stop_reason) in cases {
        let body = with(ask(text), json!({"stop": stops, "logprobs": true}));
        let reply = check_streams_alike(&world, &body).await;
        let choice = &reply["choices"][0];
        assert_eq!(choice["message"]["content"], visible, "{text}");
        assert_eq!(choice["finish_reason"], reason, "{text}");
        assert_eq!(choice["stop_reason"], stop_reason, "{text}");
    }
}

#[tokio::test]
async fn fault_63_stop_strings_do_not_replace_the_end_token() {
    let world = World::new();
    let reply = world
        .reply(&with(ask_ids(&[256, END, 257]), json!({"stop": ["never"]})))
        .await;
    assert_eq!(reply["choices"][0]["message"]["content"], "Hello");
    assert_eq!(reply["choices"][0]["finish_reason"], "stop");
    assert_eq!(reply["usage"]["completion_tokens"], 2);
}

#[tokio::test]
async fn r15_fault_165_fault_166_usage_comes_last_without_choices() {
    let world = World::new();
    let body = with(
        ask("four"),
        json!({"stream": true, "stream_options": {"include_usage": true}, "n": 2}),
    );
    let chunks = world.post(&body).await.data();
    let (last, others) = chunks.split_last().expect("chunks");
    assert_eq!(last["choices"], json!([]));
    assert_eq!(last["usage"]["completion_tokens"], 10);
    let prompt_tokens = last["usage"]["prompt_tokens"].as_u64().expect("a count");
    assert_eq!(last["usage"]["total_tokens"], prompt_tokens + 10);
    assert!(last["usage"]["prompt_tokens_details"]["cached_tokens"].is_u64());
    assert!(
        others
            .iter()
            .all(|chunk| chunk["usage"].is_null() && chunk.get("usage").is_some())
    );

    let whole = world.reply(&with(ask("four"), json!({"n": 2}))).await;
    assert_eq!(whole["usage"]["completion_tokens"], 10);
    let alone = with(
        ask("four"),
        json!({"stream_options": {"include_usage": true}}),
    );
    world.check_refused(&alone, "stream_options").await;
    let nothing = with(ask("four"), json!({"stream_options": null}));
    world.reply(&nothing).await;
}

#[tokio::test]
async fn an_error_after_the_headers_is_one_object_then_done() {
    let world = World::new();
    let ids = vocab::encode(b"abcdef");
    let text = format!("{}#nan 3#", crate::world::order(&ids));
    let body = with(
        ask_message(&text),
        json!({"stream": true, "logprobs": true}),
    );
    let chunks = world.post(&body).await.expect_status(StatusCode::OK).data();
    let (last, before) = chunks.split_last().expect("chunks");
    assert_eq!(last["error"]["code"], "numerical_error", "{last}");
    let content: String = before
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str())
        .collect();
    assert_eq!(content, "abc");
    assert!(
        before
            .iter()
            .all(|chunk| chunk["choices"][0]["finish_reason"].is_null())
    );
}
