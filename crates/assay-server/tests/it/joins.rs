//! Random replies, stops and limits, streamed and not, sixteen requests at once: text, entries and bytes
//! always join, and every reply is the one its own prompt asked for.

use futures_util::StreamExt;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use serde_json::{Value, json};

use crate::vocab::{self, END};
use crate::world::{World, ask_ids, with};

/// Replies in the default suite; each is asked for streamed and not.
const NUM_REPLIES: usize = 512;
const NUM_AT_ONCE: usize = 16;

#[derive(Clone, Debug)]
struct Case {
    token_ids: Vec<u32>,
    stop: Vec<String>,
    max_tokens: Option<usize>,
}

fn case() -> impl Strategy<Value = Case> {
    let text = prop_oneof![
        "[ -~]{0,12}".boxed(),
        "\\PC{0,6}".boxed(),
        "[日本語🙂é👩‍👩‍👧\u{fffd}]{0,6}".boxed(),
    ];
    let piece =
        (256..256 + u32::try_from(vocab::PIECES.len()).expect("small")).prop_map(|id| vec![id]);
    let byte = (0u32..256).prop_map(|byte| vec![byte]);
    let part = prop_oneof![
        4 => text.prop_map(|text| vocab::encode(text.as_bytes())),
        4 => piece,
        1 => byte,
    ];
    let tokens = prop::collection::vec(part, 0..8).prop_map(|parts| parts.concat());
    tokens.prop_flat_map(|token_ids| {
        let text = decode(&joined(&token_ids));
        let num_chars = text.chars().count();
        // Stops are mostly taken from the reply itself, so that they match.
        let inside = (0..=num_chars, 1..=5usize).prop_map(move |(begin, len)| {
            let stop: String = text.chars().skip(begin).take(len).collect();
            if stop.is_empty() {
                "never".to_owned()
            } else {
                stop
            }
        });
        let stops = prop::collection::vec(prop_oneof![3 => inside, 1 => "[ -~]{1,4}"], 0..3);
        let limit = prop::option::weighted(0.4, 1..=token_ids.len().max(1) + 1);
        (Just(token_ids), stops, limit).prop_map(|(token_ids, stop, max_tokens)| Case {
            token_ids,
            stop,
            max_tokens,
        })
    })
}

fn joined(token_ids: &[u32]) -> Vec<u8> {
    token_ids.iter().flat_map(|id| vocab::bytes(*id)).collect()
}

fn decode(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What the reply must be, by the plainest means: text, finish reason, matched stop, tokens drawn at most.
fn expected(case: &Case) -> (String, &'static str, Option<String>) {
    let ended = case.max_tokens.is_none_or(|max| case.token_ids.len() < max);
    let token_ids = match case.max_tokens {
        Some(max) if !ended => &case.token_ids[..max],
        _ => &case.token_ids[..],
    };
    let bytes = joined(token_ids);
    let text = if ended {
        decode(&bytes)
    } else {
        // An unfinished character at the end is left out (s7); anything invalid before it is not.
        let complete = (0..=bytes.len().min(3))
            .map(|cut| &bytes[..bytes.len() - cut])
            .find(|rest| {
                let tail = &bytes[rest.len()..];
                match std::str::from_utf8(tail) {
                    Ok(tail) => tail.is_empty() && !ends_inside_a_character(rest),
                    Err(error) => error.valid_up_to() == 0 && error.error_len().is_none(),
                }
            });
        decode(complete.unwrap_or(&bytes))
    };
    let mut seen = String::new();
    for char in text.chars() {
        seen.push(char);
        let matched = case
            .stop
            .iter()
            .filter(|stop| seen.ends_with(stop.as_str()));
        if let Some(stop) = matched.max_by_key(|stop| stop.len()) {
            let visible = seen[..seen.len() - stop.len()].to_owned();
            return (visible, "stop", Some(stop.clone()));
        }
    }
    (text, if ended { "stop" } else { "length" }, None)
}

fn ends_inside_a_character(bytes: &[u8]) -> bool {
    (1..=bytes.len().min(3)).any(|len| {
        let tail = &bytes[bytes.len() - len..];
        std::str::from_utf8(tail)
            .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    })
}

fn check(case: &Case, choice: &Value, streamed: bool) {
    let context = format!("{case:?} streamed: {streamed}: {choice}");
    let content = choice["message"]["content"].as_str().expect("text");
    let (text, reason, stop) = expected(case);
    assert_eq!(content, text, "{context}");
    assert_eq!(choice["finish_reason"], reason, "{context}");
    assert_eq!(choice["stop_reason"].as_str(), stop.as_deref(), "{context}");

    let entries = choice["logprobs"]["content"].as_array().expect("entries");
    let spelled: String = entries
        .iter()
        .map(|entry| entry["token"].as_str().expect("text"))
        .collect();
    assert_eq!(
        spelled, content,
        "s1: tokens join to the content: {context}"
    );
    let bytes: Vec<u8> = entries
        .iter()
        .flat_map(|entry| entry["bytes"].as_array().expect("bytes"))
        .map(|byte| {
            byte.as_u64()
                .and_then(|byte| u8::try_from(byte).ok())
                .expect("a byte")
        })
        .collect();
    let mut decoded = decode(&bytes);
    if reason == "length" && decoded != content {
        // The bytes of an unfinished character are kept, unspelled (s7).
        assert!(ends_inside_a_character(&bytes), "s7: {context}");
        assert_eq!(decoded.pop(), Some('\u{fffd}'), "{context}");
    }
    assert_eq!(decoded, content, "s1: bytes join to the content: {context}");

    let ids: Vec<u64> = entries
        .iter()
        .map(|entry| entry["token_id"].as_u64().expect("an id"))
        .collect();
    let asked: Vec<u64> = case.token_ids.iter().map(|id| u64::from(*id)).collect();
    assert!(
        asked.starts_with(&ids),
        "o1: its own tokens, in order: {context}"
    );
    for (entry, id) in entries.iter().zip(&case.token_ids) {
        let own = vocab::bytes(*id);
        let visible = entry["bytes"].as_array().expect("bytes").len();
        assert!(
            visible == own.len() || std::ptr::eq(entry, entries.last().expect("an entry")),
            "{context}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s1_o1_o2_o3_random_replies_join() {
    let config = Config {
        rng_seed: RngSeed::Fixed(20_250_101),
        ..Config::default()
    };
    let mut runner = TestRunner::new(config);
    let cases: Vec<Case> = (0..NUM_REPLIES)
        .map(|_| case().new_tree(&mut runner).expect("a case").current())
        .collect();
    let world = World::new();
    let checked = futures_util::stream::iter(cases).map(|case| {
        let world = world.clone();
        async move {
            assert!(!case.token_ids.contains(&END));
            let scores = json!({"stop": case.stop, "logprobs": true, "top_logprobs": 2, "return_token_ids": true});
            let body = with(ask_ids(&case.token_ids), scores);
            let body = match case.max_tokens {
                Some(max_tokens) => with(body, json!({"max_tokens": max_tokens})),
                None => body,
            };
            let (whole, streamed) = tokio::join!(world.reply(&body), world.streamed(&body));
            check(&case, &whole["choices"][0], false);
            check(&case, &streamed["choices"][0], true);
            assert_eq!(whole["choices"].to_string(), streamed["choices"].to_string(), "{case:?}");
            1
        }
    });
    let counts: Vec<usize> = checked.buffer_unordered(NUM_AT_ONCE).collect().await;
    assert_eq!(counts.len(), NUM_REPLIES);
}
