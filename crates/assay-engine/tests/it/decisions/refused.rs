//! What cannot be read is refused by name, before any work.

use assay_engine::decision::{
    DecideError, DecisionRequest, InvalidDecision, LabelFault, LabelQuestion,
};
use assay_engine::{EngineConfig, EngineHandle, SubmitError};
use assay_models::TokenId;
use assay_testkit::scripted::{ScriptedModel, background_row};

use super::support::{Asker, decide, decision, question};
use crate::collect::spawn;

const VOCAB: usize = 20;

fn engine(num_kv_blocks: usize) -> EngineHandle {
    let model = ScriptedModel::new(VOCAB, |history| background_row(VOCAB, history));
    let model = model.with_kv_pool(num_kv_blocks, 4);
    spawn(model, &vec![vec![b'x']; VOCAB], EngineConfig::default())
}

fn refusal(request: DecisionRequest) -> DecideError {
    let engine = engine(64);
    let error = Asker::ask(&engine, request).err().expect("it is refused");
    assert_eq!(engine.stats().num_steps, 0);
    error
}

fn check_refused(questions: Vec<LabelQuestion>, expected: &InvalidDecision, message: &str) {
    let error = refusal(decision(questions));
    assert_eq!(error, DecideError::Invalid(expected.clone()));
    assert_eq!(error.to_string(), message);
}

fn check_label(labels: &[&[TokenId]], label: usize, fault: LabelFault, message: &str) {
    let questions = vec![
        question(vec![1], &[&[2]], &[9]),
        question(vec![1, 2], labels, &[9, 11]),
    ];
    let expected = InvalidDecision::Label {
        question: 1,
        label,
        fault,
    };
    check_refused(questions, &expected, message);
}

#[test]
fn labels_that_cannot_be_told_apart_or_read() {
    check_label(
        &[&[3], &[]],
        1,
        LabelFault::Empty,
        "questions[1].labels[1]: the label is empty",
    );
    check_label(
        &[&[3, 4], &[5], &[3, 4]],
        2,
        LabelFault::SameAs(0),
        "questions[1].labels[2]: the same token path as labels[0]",
    );
    check_label(
        &[&[3], &[4, 11]],
        1,
        LabelFault::HoldsEnd(11),
        "questions[1].labels[1]: token 11 ends a label and cannot stand inside one",
    );
    check_label(
        &[&[20]],
        0,
        LabelFault::UnknownToken(20),
        "questions[1].labels[0]: token 20 is not below the vocabulary size",
    );
    check_label(
        &[&[3; 65]],
        0,
        LabelFault::TooManyTokens { num_tokens: 65 },
        "questions[1].labels[0]: 65 tokens; a label has at most 64",
    );
}

#[test]
fn questions_without_sense() {
    check_refused(
        vec![],
        &InvalidDecision::NoQuestions,
        "questions: at least one",
    );
    check_refused(
        vec![question(vec![], &[&[3]], &[9])],
        &InvalidDecision::EmptyPrompt { question: 0 },
        "questions[0].prompt_token_ids: the prompt is empty",
    );
    let no_labels = "questions[0]: at least one label and one end token, end tokens ascending";
    for asked in [
        question(vec![1], &[], &[9]),
        question(vec![1], &[&[3]], &[]),
        question(vec![1], &[&[3]], &[9, 8]),
        question(vec![1], &[&[3]], &[9, 9]),
    ] {
        check_refused(
            vec![asked],
            &InvalidDecision::NoLabels { question: 0 },
            no_labels,
        );
    }
    check_refused(
        vec![question(vec![1], &[&[3]], &[99])],
        &InvalidDecision::UnknownToken {
            question: 0,
            token_id: 99,
            vocab_size: VOCAB,
        },
        "questions[0]: token 99 is not below the vocabulary size 20",
    );
    check_refused(
        vec![
            question(vec![1], &[&[3]], &[9]),
            question(vec![1, 2], &[&[3]], &[9]),
            question(vec![2, 1], &[&[3]], &[9]),
        ],
        &InvalidDecision::NothingShared { question: 2 },
        "questions[2].prompt_token_ids: it begins unlike the others; ask it in a request of its own",
    );
}

#[test]
fn edges_are_counted_and_bounded() {
    let asked = |prompt: TokenId| question(vec![1, prompt], &[&[3, 4], &[3, 5], &[6]], &[9]);
    let with_limit = |questions: Vec<LabelQuestion>, max_trie_edges| DecisionRequest {
        max_trie_edges,
        ..decision(questions)
    };
    // What questions share counts once.
    for (questions, num_edges) in [
        (vec![asked(1)], 4),
        (vec![asked(1), asked(1)], 4),
        (vec![asked(1), asked(2)], 8),
    ] {
        let engine = engine(64);
        let reading = decide(&engine, with_limit(questions.clone(), num_edges));
        assert_eq!(reading.trie_edges as usize, num_edges);
        let error = refusal(with_limit(questions, num_edges - 1));
        let DecideError::Invalid(InvalidDecision::TooManyEdges { edges, limit }) = error else {
            panic!("{error:?}");
        };
        assert!(edges > limit && limit == num_edges - 1, "{edges} {limit}");
    }
}

#[test]
fn paths_that_the_context_or_the_pool_cannot_hold() {
    let asked =
        |num_prompt: usize| vec![question(vec![1; num_prompt], &[&[3; 10], &[4; 10]], &[9])];
    // 16 blocks of 4 tokens: a path of 60 tokens and the copy of the block that the labels part in.
    let engine = engine(16);
    decide(&engine, decision(asked(50)));
    for num_prompt in [51, 54, 60, 100] {
        let error = Asker::ask(&engine, decision(asked(num_prompt))).err();
        let Some(DecideError::Invalid(InvalidDecision::TooLong {
            num_tokens,
            limit_tokens,
        })) = error
        else {
            panic!("{error:?}");
        };
        assert_eq!(num_tokens, num_prompt + 10);
        assert!(limit_tokens < num_tokens, "{limit_tokens}");
    }
}

#[test]
fn an_engine_that_drains_or_is_full_takes_none() {
    let engine = engine(64);
    engine.drain();
    let error = Asker::ask(&engine, decision(vec![question(vec![1], &[&[2]], &[9])])).err();
    assert!(
        matches!(
            error,
            Some(DecideError::Submit(
                SubmitError::Draining | SubmitError::Stopped
            ))
        ),
        "{error:?}"
    );
}
