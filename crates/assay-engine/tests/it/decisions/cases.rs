//! Single questions whose answers can be worked out.

use assay_engine::decision::LabelQuestion;
use assay_engine::{EngineConfig, EngineHandle, PrefixCache};
use assay_models::TokenId;
use assay_testkit::scripted::{ScriptedModel, background_row, forcing_row};

use super::support::{check_forced, check_masses, decide, decision, question};
use crate::collect::spawn;

/// Digits are 0 to 9, the terminators 10 and 12; the rest is other text.
const VOCAB: usize = 40;
const ENDS: [TokenId; 2] = [10, 12];

fn table() -> Vec<Vec<u8>> {
    (0..VOCAB).map(|id| vec![b'0' + id as u8]).collect()
}

fn engine(config: EngineConfig) -> EngineHandle {
    let model = ScriptedModel::new(VOCAB, |history| background_row(VOCAB, history));
    spawn(model.with_kv_pool(512, 4), &table(), config)
}

fn without_cache() -> EngineConfig {
    EngineConfig {
        prefix_cache: PrefixCache::Off,
        ..EngineConfig::default()
    }
}

fn digits(number: u32) -> Vec<TokenId> {
    number
        .to_string()
        .bytes()
        .map(|digit| u32::from(digit - b'0'))
        .collect()
}

fn integers(range: std::ops::Range<u32>, prompt: Vec<TokenId>) -> LabelQuestion {
    LabelQuestion {
        prompt_token_ids: prompt,
        labels: range.map(digits).collect(),
        end_token_ids: ENDS.to_vec(),
        healed_bytes: Vec::new(),
    }
}

fn check_question(asked: &LabelQuestion) {
    for config in [EngineConfig::default(), without_cache()] {
        let engine = engine(config);
        // The second time most of it comes from the cache.
        for _ in 0..2 {
            let reading = decide(&engine, decision(vec![asked.clone()]));
            check_forced(&engine, asked, &reading.questions[0]);
        }
    }
}

#[test]
fn labels_have_the_bits_of_their_paths_alone() {
    let prompt: Vec<TokenId> = (0..23).map(|i| 13 + i * 7 % 27).collect();
    // Two one-token labels; one label; a label that begins another; a long one; a chain without a parting.
    let cases: [&[&[TokenId]]; 6] = [
        &[&[1], &[2]],
        &[&[3]],
        &[&[1], &[1, 1], &[1, 1, 1]],
        &[
            &[
                5, 6, 7, 8, 9, 5, 6, 7, 8, 9, 5, 6, 7, 8, 9, 5, 6, 7, 8, 9, 5,
            ],
            &[5, 6],
        ],
        &[&[4, 4, 4], &[4, 4, 5]],
        &[&[9, 1], &[8, 1], &[9, 2], &[8]],
    ];
    for labels in cases {
        for num_prompt in [1, 3, 4, 5, 22, 23] {
            check_question(&question(prompt[..num_prompt].to_vec(), labels, &ENDS));
        }
    }
    check_question(&question(prompt, &[&[1], &[11]], &[12]));
}

/// "1" ends before "11" begins: both are read at the same place, from one row.
#[test]
fn one_and_eleven_are_different_events() {
    let model = ScriptedModel::new(VOCAB, |history| match history {
        [.., 1, 1] => forcing_row(VOCAB, history, ENDS[0]),
        [.., 1] => forcing_row(VOCAB, history, 1),
        _ => background_row(VOCAB, history),
    });
    let engine = spawn(model, &table(), EngineConfig::default());
    let asked = question(vec![20, 21], &[&[1], &[1, 1]], &ENDS);
    let reading = decide(&engine, decision(vec![asked.clone()]))
        .questions
        .remove(0);
    check_forced(&engine, &asked, &reading);
    let [one, eleven] = reading.labels.as_slice() else {
        panic!("two labels");
    };
    assert_eq!(one.steps[0].to_bits(), eleven.steps[0].to_bits(), "one row");
    assert!(eleven.joint > one.joint + 5.0, "the model goes on");
    assert_eq!(reading.trie_edges, 2);
}

/// The complete tree of 0..=999: what is no such number leaves it somewhere.
#[test]
fn the_integers_below_a_thousand_and_all_that_leaves_them_are_one() {
    let asked = integers(0..1000, (0..30).map(|i| 13 + i % 20).collect());
    for config in [EngineConfig::default(), without_cache()] {
        let engine = engine(config);
        let reading = decide(&engine, decision(vec![asked.clone()]));
        let reading = &reading.questions[0];
        check_masses(reading);
        assert_eq!(reading.trie_edges, 10 + 90 + 900);
        assert_eq!(
            engine.stats().num_computed_tokens,
            30 + 1000,
            "each edge once"
        );
        for number in [0, 7, 10, 99, 100, 507, 999] {
            let one = LabelQuestion {
                labels: vec![digits(number)],
                ..asked.clone()
            };
            let forced = super::support::force(&engine, &one, &one.labels[0]);
            let read = &reading.labels[number as usize];
            assert_eq!(read.joint.to_bits(), forced.joint.to_bits(), "{number}");
        }
    }
}

#[test]
fn two_hundred_and_fifty_five_options_share_what_they_begin_with() {
    let asked = integers(100..355, vec![30; 9]);
    let engine = engine(EngineConfig::default());
    let reading = decide(&engine, decision(vec![asked.clone()]));
    check_forced(&engine, &asked, &reading.questions[0]);
    let num_edges = 3 + (10 + 10 + 6) + 255;
    assert_eq!(reading.trie_edges, num_edges);
    assert_eq!(engine.stats().num_trie_edges, u64::from(num_edges));
}

#[test]
fn greedy_decoding_would_answer_with_a_label_or_not() {
    let script = |first: TokenId, then: TokenId| {
        move |history: &[TokenId]| match history {
            [.., 2] => forcing_row(VOCAB, history, then),
            _ => forcing_row(VOCAB, history, first),
        }
    };
    for (first, then, labels, is_label) in [
        (2, 10, [[2].as_slice(), &[3]], true),
        (2, 12, [&[2], &[3]], true),
        // It would go on behind the label, say something else, or say only the start of one.
        (2, 5, [&[2], &[3]], false),
        (4, 10, [&[2], &[3]], false),
        (2, 10, [&[2, 2], &[3]], false),
    ] {
        let engine = spawn(
            ScriptedModel::new(VOCAB, script(first, then)),
            &table(),
            EngineConfig::default(),
        );
        let asked = question(vec![20], &labels, &ENDS);
        let reading = decide(&engine, decision(vec![asked]));
        assert_eq!(
            reading.questions[0].argmax_is_label, is_label,
            "{first} {then} {labels:?}"
        );
    }
}

/// The state goes through the model once, and each question's own words once.
#[test]
fn twenty_questions_compute_their_state_once() {
    let state: Vec<TokenId> = (0..200).map(|i| 13 + i * 11 % 27).collect();
    let asked: Vec<LabelQuestion> = (0..20)
        .map(|index| {
            let words: Vec<TokenId> = (0..5 + index % 3)
                .map(|i| 13 + (index * 5 + i) % 27)
                .collect();
            let prompt = [state.as_slice(), &[13 + index], &words].concat();
            question(prompt, &[&[1], &[2, 3]], &ENDS)
        })
        .collect();
    for config in [EngineConfig::default(), without_cache()] {
        let engine = engine(config);
        let reading = decide(&engine, decision(asked.clone()));
        let num_words: usize = asked
            .iter()
            .map(|one| one.prompt_token_ids.len() - 200)
            .sum();
        let expected = 200 + num_words + 20 * 3;
        assert_eq!(engine.stats().num_computed_tokens, expected as u64);
        assert_eq!(reading.prompt_tokens as usize, 200 + num_words);
        assert_eq!((reading.trie_edges, reading.cached_tokens), (60, 0));
        for (one, read) in asked.iter().zip(&reading.questions) {
            assert_eq!(read.prompt_tokens as usize, one.prompt_token_ids.len());
            check_forced(&engine, one, read);
        }
        // Asked again, all but each prompt's last row comes from the cache, if there is one.
        let before = engine.stats().num_computed_tokens;
        let again = decide(&engine, decision(asked.clone()));
        let num_computed = engine.stats().num_computed_tokens - before;
        if config.prefix_cache == PrefixCache::On {
            assert_eq!(num_computed, 1 + 20 + 60);
            assert_eq!(again.cached_tokens, again.prompt_tokens - 21);
        } else {
            assert_eq!(num_computed, expected as u64);
        }
        let bits = |reading: &assay_engine::decision::DecisionReading| {
            let questions = reading.questions.iter();
            questions
                .flat_map(|one| one.joint_logprobs())
                .map(f64::to_bits)
                .collect::<Vec<_>>()
        };
        assert_eq!(bits(&again), bits(&reading));
    }
}

/// Questions with one prompt, a prompt that begins another's, a label that another's prompt goes on with.
#[test]
fn questions_may_overlap_in_every_way() {
    let prompt = vec![20, 21, 22, 23, 24];
    let longer = [prompt.as_slice(), &[1, 2, 30]].concat();
    let asked = vec![
        question(prompt.clone(), &[&[1], &[1, 2, 30, 5]], &ENDS),
        question(prompt.clone(), &[&[1], &[3]], &[12]),
        question(longer.clone(), &[&[5], &[1, 2]], &ENDS),
        question(prompt[..2].to_vec(), &[&[22, 23], &[4]], &ENDS),
        question(longer[..6].to_vec(), &[&[2], &[7]], &ENDS),
    ];
    for config in [EngineConfig::default(), without_cache()] {
        let engine = engine(config);
        for _ in 0..2 {
            let reading = decide(&engine, decision(asked.clone()));
            for (one, read) in asked.iter().zip(&reading.questions) {
                check_forced(&engine, one, read);
            }
        }
    }
}
