//! Random replies, stops, seeds and limits, with reasoning and without, streamed and not, sixteen requests at once:
//! texts, entries and bytes always join, and every reply is the one its own prompt asked for.

use futures_util::StreamExt;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use serde_json::{Value, json};

use crate::reasoning::OPENED;
use crate::vocab::{self, END, END_THINK, STRADDLE};
use crate::world::{Setup, World, ask_message, order, with};

/// Cases in the default suite, and in the slow one; each is asked for streamed and not, so two replies.
const NUM_CASES: usize = 384;
const NUM_SLOW_CASES: usize = 3_000;
const NUM_AT_ONCE: usize = 16;
const END_TAG: &str = "</think>";

#[derive(Clone, Debug)]
struct Case {
    /// Whether the prompt opened a block of reasoning.
    thinks: bool,
    seed: i64,
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
    // The end of the reasoning, whole, in single bytes, with text on both sides, and begun but for its last letter.
    let tag = prop::sample::select(vec![
        vec![END_THINK],
        vocab::encode(END_TAG.as_bytes()),
        vec![STRADDLE],
        vocab::encode(b"</thin"),
    ]);
    let part = prop_oneof![
        4 => text.prop_map(|text| vocab::encode(text.as_bytes())),
        4 => piece,
        1 => byte,
        1 => tag,
    ];
    let tokens = prop::collection::vec(part, 0..8).prop_map(|parts| parts.concat());
    let mode = (any::<bool>(), any::<i64>());
    (tokens, mode).prop_flat_map(|(token_ids, (thinks, seed))| {
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
        (Just(token_ids), stops, limit).prop_map(move |(token_ids, stop, max_tokens)| Case {
            thinks,
            seed,
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

/// What the reply must be.
struct Expected {
    reasoning: String,
    content: String,
    reason: &'static str,
    stop: Option<String>,
}

/// The whole text of the reply, whatever is cut from it later; and whether the model ended it.
fn whole_text(case: &Case) -> (String, bool) {
    let ended = case.max_tokens.is_none_or(|max| case.token_ids.len() < max);
    let token_ids = match case.max_tokens {
        Some(max) if !ended => &case.token_ids[..max],
        _ => &case.token_ids[..],
    };
    let bytes = joined(token_ids);
    if ended {
        return (decode(&bytes), true);
    }
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
    (decode(complete.unwrap_or(&bytes)), false)
}

/// Found by the plainest means: the whole text, split at the first tag, cut at the first stop.
fn expected(case: &Case) -> Expected {
    let (text, ended) = whole_text(case);
    let without_breaks = |text: &str| text.trim_start_matches(['\n', '\r']).to_owned();
    let (reasoning, content) = match text.split_once(END_TAG) {
        _ if !case.thinks => (String::new(), text),
        None => (without_breaks(&text), String::new()),
        Some((reasoning, content)) => (without_breaks(reasoning), without_breaks(content)),
    };
    let mut seen = String::new();
    for char in content.chars() {
        seen.push(char);
        let matched = case
            .stop
            .iter()
            .filter(|stop| seen.ends_with(stop.as_str()));
        if let Some(stop) = matched.max_by_key(|stop| stop.len()) {
            return Expected {
                reasoning,
                content: seen[..seen.len() - stop.len()].to_owned(),
                reason: "stop",
                stop: Some(stop.clone()),
            };
        }
    }
    Expected {
        reasoning,
        content,
        reason: if ended { "stop" } else { "length" },
        stop: None,
    }
}

fn ends_inside_a_character(bytes: &[u8]) -> bool {
    (1..=bytes.len().min(3)).any(|len| {
        let tail = &bytes[bytes.len() - len..];
        std::str::from_utf8(tail)
            .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    })
}

/// Checks that a list of entries spells `text`, in tokens and in bytes.
fn check_list(entries: &[Value], text: &str, reason: &str, context: &str) {
    let spelled: String = entries
        .iter()
        .map(|entry| entry["token"].as_str().expect("text"))
        .collect();
    assert_eq!(spelled, text, "s1: tokens join to the text: {context}");
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
    if reason == "length" && decoded != text {
        // The bytes of an unfinished character are kept, unspelled (s7).
        assert!(ends_inside_a_character(&bytes), "s7: {context}");
        assert_eq!(decoded.pop(), Some('\u{fffd}'), "{context}");
    }
    assert_eq!(decoded, text, "s1: bytes join to the text: {context}");
}

fn check(case: &Case, choice: &Value, streamed: bool) {
    let context = format!("{case:?} streamed: {streamed}: {choice}");
    let wanted = expected(case);
    let text = |field: &str| choice["message"][field].as_str().unwrap_or("").to_owned();
    assert_eq!(text("reasoning_content"), wanted.reasoning, "{context}");
    assert_eq!(text("content"), wanted.content, "{context}");
    let is_null = case.thinks && wanted.content.is_empty();
    assert_eq!(
        choice["message"]["content"].is_null(),
        is_null,
        "s8: {context}"
    );
    assert_eq!(choice["finish_reason"], wanted.reason, "{context}");
    assert_eq!(
        choice["stop_reason"].as_str(),
        wanted.stop.as_deref(),
        "{context}"
    );

    let list = |field: &str| {
        let list = choice["logprobs"].get(field).and_then(Value::as_array);
        list.cloned().unwrap_or_default()
    };
    let (thoughts, content) = (list("reasoning_content"), list("content"));
    assert_eq!(
        choice["logprobs"].get("reasoning_content").is_some(),
        case.thinks
    );
    check_list(&thoughts, &wanted.reasoning, wanted.reason, &context);
    check_list(&content, &wanted.content, wanted.reason, &context);

    // o1: its own tokens, in order, each once; but for tags and separators, all of them.
    let entries: Vec<&Value> = thoughts.iter().chain(&content).collect();
    let is_rest = |entry: &Value| entry["logprob"].as_f64() == Some(0.0);
    let own: Vec<u64> = entries
        .iter()
        .filter(|entry| !is_rest(entry))
        .map(|entry| entry["token_id"].as_u64().expect("an id"))
        .collect();
    let rests = entries.iter().filter(|entry| is_rest(entry));
    assert!(rests.count() <= usize::from(case.thinks), "s5: {context}");
    let mut asked = case.token_ids.iter().map(|id| u64::from(*id));
    assert!(
        own.iter().all(|id| asked.any(|asked| asked == *id)),
        "o1: {context}"
    );
    if !case.thinks {
        let asked: Vec<u64> = case.token_ids.iter().map(|id| u64::from(*id)).collect();
        assert!(asked.starts_with(&own), "o1: {context}");
    }
    for entry in &entries {
        let id = entry["token_id"]
            .as_u64()
            .and_then(|id| u32::try_from(id).ok());
        let whole = vocab::bytes(id.expect("an id"));
        let bytes: Vec<u8> = serde_json::from_value(entry["bytes"].clone()).expect("bytes");
        let is_part = bytes.is_empty() || whole.windows(bytes.len()).any(|part| part == bytes);
        assert!(is_part, "{context}");
    }
    let ids = choice["token_ids"].as_array().expect("ids");
    assert_eq!(
        ids.iter()
            .map(|id| id.as_u64().expect("an id"))
            .collect::<Vec<_>>(),
        own,
        "{context}"
    );
}

async fn check_random_replies(num_cases: usize, seed: u64) {
    let config = Config {
        rng_seed: RngSeed::Fixed(seed),
        ..Config::default()
    };
    let mut runner = TestRunner::new(config);
    let cases: Vec<Case> = (0..num_cases)
        .map(|_| case().new_tree(&mut runner).expect("a case").current())
        .collect();
    let plain = World::new();
    let thinking = Setup {
        template: Some(OPENED),
        ..Setup::default()
    }
    .build();
    let checked = futures_util::stream::iter(cases).map(|case| {
        let world = if case.thinks { &thinking } else { &plain }.clone();
        async move {
            assert!(!case.token_ids.contains(&END));
            let opened = if case.thinks { "#open 2#" } else { "" };
            let body = ask_message(&format!("{opened}{}", order(&case.token_ids)));
            let scores = json!({
                "stop": case.stop, "seed": case.seed,
                "logprobs": true, "top_logprobs": 2, "return_token_ids": true,
            });
            let body = with(body, scores);
            let body = match case.max_tokens {
                Some(max_tokens) => with(body, json!({"max_tokens": max_tokens})),
                None => body,
            };
            let (whole, streamed) = tokio::join!(world.reply(&body), world.streamed(&body));
            check(&case, &whole["choices"][0], false);
            check(&case, &streamed["choices"][0], true);
            assert_eq!(
                whole["choices"].to_string(),
                streamed["choices"].to_string(),
                "{case:?}"
            );
            2
        }
    });
    let counts: Vec<usize> = checked.buffer_unordered(NUM_AT_ONCE).collect().await;
    assert_eq!(counts.iter().sum::<usize>(), 2 * num_cases);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s1_o1_o2_o3_fault_65_fault_101_random_replies_join() {
    check_random_replies(NUM_CASES, 20_250_101).await;
}

/// More than 5,000 replies with another seed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "slow: 6,000 replies; CONTRIBUTING.md says how to run it"]
async fn s1_o1_o2_o3_six_thousand_random_replies_join() {
    check_random_replies(NUM_SLOW_CASES, 20_250_102).await;
}
