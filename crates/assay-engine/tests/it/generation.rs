//! One request at a time: text, entries, finish reasons.

use assay_engine::{FinishReason, SamplingParams};
use assay_testkit::scripted::{ScriptedModel, ScriptedVocab, replying};

use crate::collect::{ChoiceReply, reply_alone, request};

/// What the model says, what ends it, and what must come of it.
struct Case<'a> {
    pieces: &'a [&'a [u8]],
    /// Tokens as bytes; each is one token of the vocabulary.
    reply: &'a [&'a [u8]],
    stop: &'a [&'a str],
    max_tokens: u32,
    text: &'a str,
    /// Text of each entry.
    entries: &'a [&'a str],
    finish: FinishReason,
}

fn check_generation(case: &Case<'_>) -> ChoiceReply {
    let vocab = ScriptedVocab::new(case.pieces);
    let reply = case
        .reply
        .iter()
        .map(|bytes| {
            let ids = vocab.encode(bytes);
            assert_eq!(ids.len(), 1, "{bytes:?} is not one token");
            ids[0]
        })
        .chain([vocab.end_token_id()])
        .collect();
    let prompt = vocab.encode(b"ask");
    let model = ScriptedModel::new(
        vocab.vocab_size(),
        replying(vocab.vocab_size(), prompt.len(), reply),
    );
    let mut request = request(prompt, case.max_tokens);
    request.stop = case.stop.iter().map(|&stop| stop.to_owned()).collect();
    request.end_token_ids = vec![vocab.end_token_id()];
    let reply = reply_alone(model, vocab.token_bytes(), request).expect("no failure");

    assert_eq!(reply.text(), case.text);
    let entries: Vec<&str> = reply.entries.iter().map(|e| e.text.as_str()).collect();
    assert_eq!(entries, case.entries);
    assert_eq!(reply.finish.as_ref(), Some(&case.finish));
    reply
}

fn end_token(num_pieces: u32) -> FinishReason {
    FinishReason::EndToken(256 + num_pieces)
}

fn stopped(stop: &str) -> FinishReason {
    FinishReason::StopString(stop.to_owned())
}

#[test]
fn plain_text_ends_at_the_end_token_which_has_no_entry() {
    let reply = check_generation(&Case {
        pieces: &[b"Hel", b"lo"],
        reply: &[b"Hel", b"lo", b"!"],
        stop: &[],
        max_tokens: 10,
        text: "Hello!",
        entries: &["Hel", "lo", "!"],
        finish: end_token(2),
    });
    assert_eq!(reply.usage.map(|u| u.completion_tokens), Some(4));
    assert_eq!(reply.deltas, ["Hel", "lo", "!"]);
}

#[test]
fn fault_42_halves_of_a_character_leave_together() {
    let reply = check_generation(&Case {
        pieces: &[],
        reply: &[b"a", b"\xE2", b"\x82", b"\xAC", b"b"],
        stop: &[],
        max_tokens: 10,
        text: "a€b",
        entries: &["a", "", "", "€", "b"],
        finish: end_token(0),
    });
    assert_eq!(reply.deltas, ["a", "€", "b"]);
    assert_eq!(reply.bytes(), "a€b".as_bytes());
}

/// S7.
#[test]
fn fault_49_length_inside_a_character_keeps_the_piece_unspelled() {
    let reply = check_generation(&Case {
        pieces: &[b"a\xE2\x82"],
        reply: &[b"x", b"a\xE2\x82", b"\xAC"],
        stop: &[],
        max_tokens: 2,
        text: "xa",
        entries: &["x", "a"],
        finish: FinishReason::Length,
    });
    assert_eq!(reply.bytes(), b"xa\xE2\x82");
}

#[test]
fn fault_47_unfinished_character_before_the_end_token_is_replaced() {
    check_generation(&Case {
        pieces: &[],
        reply: &[b"x", b"\xE2", b"\x82"],
        stop: &[],
        max_tokens: 10,
        text: "x\u{FFFD}",
        entries: &["x", "", "\u{FFFD}"],
        finish: end_token(0),
    });
}

/// S2: the replacement goes to the entry that proved the bytes invalid.
#[test]
fn invalid_bytes_are_replaced_where_they_prove_invalid() {
    check_generation(&Case {
        pieces: &[],
        reply: &[b"\xE2", b"x", b"\xFF"],
        stop: &[],
        max_tokens: 10,
        text: "\u{FFFD}x\u{FFFD}",
        entries: &["", "\u{FFFD}x", "\u{FFFD}"],
        finish: end_token(0),
    });
}

/// S6, S4: the token in which the stop begins is cut, those after it have no entry.
#[test]
fn fault_54_fault_55_fault_58_stop_inside_a_token_cuts_its_entry() {
    let reply = check_generation(&Case {
        pieces: &[b"one.", b"!two"],
        reply: &[b"x", b"one.", b"!two"],
        stop: &[".!"],
        max_tokens: 10,
        text: "xone",
        entries: &["x", "one"],
        finish: stopped(".!"),
    });
    assert_eq!(reply.bytes(), b"xone");
    assert_eq!(reply.deltas, ["x", "one"]);
}

#[test]
fn fault_53_fault_57_stop_that_is_not_completed_is_released_once() {
    let reply = check_generation(&Case {
        pieces: &[],
        reply: &[b"a", b".", b"b", b"."],
        stop: &[".!"],
        max_tokens: 10,
        text: "a.b.",
        entries: &["a", ".", "b", "."],
        finish: end_token(0),
    });
    assert_eq!(reply.deltas, ["a", ".b", "."]);
}

#[test]
fn stop_that_cuts_the_prover_leaves_the_replacement_to_its_bytes() {
    let reply = check_generation(&Case {
        pieces: &[],
        reply: &[b"a", b"\xE2", b"x"],
        stop: &["x"],
        max_tokens: 10,
        text: "a\u{FFFD}",
        entries: &["a", "\u{FFFD}"],
        finish: stopped("x"),
    });
    assert_eq!(reply.bytes(), b"a\xE2");
}

#[test]
fn stop_that_is_a_split_character_takes_both_halves() {
    let reply = check_generation(&Case {
        pieces: &[b"a\xC3"],
        reply: &[b"a\xC3", b"\xA9"],
        stop: &["é"],
        max_tokens: 10,
        text: "a",
        entries: &["a"],
        finish: stopped("é"),
    });
    assert_eq!(reply.bytes(), b"a");
}

#[test]
fn fault_61_fault_62_the_match_that_ends_first_wins_and_is_cut_whole() {
    check_generation(&Case {
        pieces: &[b"xabcd"],
        reply: &[b"xabcd"],
        stop: &["bcd", "abc", "bc"],
        max_tokens: 10,
        text: "x",
        entries: &["x"],
        finish: stopped("abc"),
    });
}

/// The counts of the reply reach the sampler, and stay right over many steps.
#[test]
fn penalties_see_the_reply_so_far() {
    let table = vec![vec![b'x']; 3];
    let row = [3.0, 2.0, 1.5];
    let drawn = |presence_penalty, frequency_penalty| {
        let mut request = request(vec![2], 6);
        request.sampling = SamplingParams {
            presence_penalty,
            frequency_penalty,
            ..SamplingParams::greedy()
        };
        let model = ScriptedModel::new(3, move |_| row.to_vec());
        reply_alone(model, &table, request)
            .expect("no failure")
            .token_ids()
    };
    assert_eq!(drawn(0.0, 0.0), [0; 6]);
    // 3 − 2 = 1 is below 2 and 1.5, and stays there; 2 − 2 and 1.5 − 2 are below 1.
    assert_eq!(drawn(2.0, 0.0), [0, 1, 2, 0, 0, 0]);
    // Scores 3, 2, 1.5 fall by 1 with each draw: ties go to the lower id.
    assert_eq!(drawn(0.0, 1.0), [0, 0, 1, 2, 0, 1]);
}
