//! Boundaries that a label reaches back over: the mass that reproduces the bytes, against every way to cut them.

use assay_engine::EngineConfig;
use assay_engine::decision::{
    DecideError, InvalidDecision, LabelFault, LabelQuestion, LabelReading,
};
use assay_models::TokenId;
use assay_testkit::scripted::{ScriptedModel, ScriptedVocab, background_row};

use super::support::{Asker, check_masses, decide, decision};
use crate::collect::spawn;
use crate::scores::reference_logprobs;

/// Tokens of one to four bytes that overlap in many ways.
fn vocab() -> ScriptedVocab {
    ScriptedVocab::new(["ab", "abc", "bc", "bcd", "cd", "abcd", " a", "\n\n"])
}

/// The probability that the model goes on with `bytes`, whatever tokens it cuts them into.
fn mass_of_bytes(vocab: &ScriptedVocab, history: &[TokenId], bytes: &[u8]) -> f64 {
    let logprobs = reference_logprobs(&background_row(vocab.vocab_size(), history));
    let tokens = vocab.token_bytes().iter().zip(0..);
    tokens
        .filter(|(token, _)| !token.is_empty())
        .map(|(token, token_id)| {
            let probability = logprobs[token_id as usize].exp();
            if token.starts_with(bytes) {
                probability
            } else if let Some(rest) = bytes.strip_prefix(token.as_slice()) {
                let history = [history, &[token_id]].concat();
                probability * mass_of_bytes(vocab, &history, rest)
            } else {
                0.0
            }
        })
        .sum()
}

/// The probability of exactly these tokens and the terminator.
fn joint(vocab: &ScriptedVocab, prompt: &[TokenId], label: &[TokenId]) -> f64 {
    let mut history = prompt.to_vec();
    let mut sum = 0.0;
    for &token_id in label.iter().chain([&vocab.end_token_id()]) {
        let row = background_row(vocab.vocab_size(), &history);
        sum += reference_logprobs(&row)[token_id as usize];
        history.push(token_id);
    }
    sum
}

fn check_healed(healed: &[u8], labels: &[&[&[u8]]]) -> LabelReading {
    let vocab = vocab();
    let vocab_size = vocab.vocab_size();
    let token_id = |bytes: &[u8]| {
        let index = vocab.token_bytes().iter().position(|token| token == bytes);
        index.expect("it is a token") as TokenId
    };
    let asked = LabelQuestion {
        prompt_token_ids: vocab.encode(b"what is it"),
        labels: labels
            .iter()
            .map(|label| label.iter().map(|token| token_id(token)).collect())
            .collect(),
        end_token_ids: vec![vocab.end_token_id()],
        healed_bytes: healed.to_vec(),
    };
    let model = ScriptedModel::new(vocab_size, move |history| {
        background_row(vocab_size, history)
    });
    let engine = spawn(model, vocab.token_bytes(), EngineConfig::default());
    let reading = decide(&engine, decision(vec![asked.clone()]))
        .questions
        .remove(0);

    let prompt = &asked.prompt_token_ids;
    let mass = mass_of_bytes(&vocab, prompt, healed).ln();
    let read = reading.healed_logprob.expect("bytes are healed");
    assert!((read - mass).abs() < 1e-10, "{read}, not {mass}");
    for (label, score) in asked.labels.iter().zip(&reading.labels) {
        let expected = joint(&vocab, prompt, label) - mass;
        assert!(
            (score.joint - expected).abs() < 1e-10,
            "{label:?}: {} {expected}",
            score.joint
        );
    }
    check_masses(&reading);
    reading
}

#[test]
fn healed_labels_are_given_that_their_bytes_come() {
    // One byte, which any token that begins with it reproduces.
    let reading = check_healed(b"a", &[&[b"ab"], &[b"a", b"x"]]);
    assert_eq!(reading.trie_edges, 3, "no token ends inside one byte");
    // Several bytes, which many cuts reproduce: a b c, a bc, ab c, and what reaches past them.
    let reading = check_healed(
        b"abc",
        &[&[b"abcd"], &[b"ab", b"cd"], &[b"abc", b"d", b"d"]],
    );
    // abcd; ab cd; abc d d; and the cuts that are no label's: a, a b.
    assert_eq!(reading.trie_edges, 1 + 2 + 3 + 2);
    check_healed(b"\n", &[&[b"\n\n", b"x"], &[b"\n", b"y"]]);
    check_healed(
        b" abc",
        &[
            &[b" a", b"bcd"],
            &[b" ", b"abcd"],
            &[b" ", b"a", b"b", b"c", b"z"],
        ],
    );
}

#[test]
fn a_label_that_does_not_spell_the_healed_bytes_is_refused() {
    let vocab = vocab();
    let vocab_size = vocab.vocab_size();
    let model = ScriptedModel::new(vocab_size, move |history| {
        background_row(vocab_size, history)
    });
    let engine = spawn(model, vocab.token_bytes(), EngineConfig::default());
    for label in [&b"b"[..], b"a"] {
        let asked = LabelQuestion {
            prompt_token_ids: vec![1],
            labels: vec![vocab.encode(label)],
            end_token_ids: vec![vocab.end_token_id()],
            healed_bytes: b"ab".to_vec(),
        };
        let error = Asker::ask(&engine, decision(vec![asked])).err();
        let expected = InvalidDecision::Label {
            question: 0,
            label: 0,
            fault: LabelFault::NotHealed,
        };
        assert_eq!(error, Some(DecideError::Invalid(expected)), "{label:?}");
    }
}
