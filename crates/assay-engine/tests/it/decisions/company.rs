//! Decisions beside each other and beside other requests: nobody's bits move, nothing is lost, everybody leaves.

use std::time::{Duration, Instant};

use assay_engine::decision::{DecisionRequest, LabelQuestion};
use assay_engine::{EngineConfig, EngineHandle, PrefixCache, RequestError};
use assay_models::TokenId;
use assay_testkit::scripted::{ScriptedModel, StepGate, background_row, nan_row};
use proptest::prelude::*;

use super::support::{Asker, check_forced, decide, decision, question, without_cached_tokens};
use crate::collect::{Client, reply_alone, request, spawn};

const VOCAB: usize = 60;
const BLOCK_TOKENS: usize = 4;
const ENDS: [TokenId; 3] = [50, 53, 58];

fn table() -> Vec<Vec<u8>> {
    vec![vec![b'x']; VOCAB]
}

fn model() -> ScriptedModel {
    ScriptedModel::new(VOCAB, |history| background_row(VOCAB, history))
}

fn roomy() -> EngineHandle {
    spawn(
        model().with_kv_pool(2048, BLOCK_TOKENS),
        &table(),
        EngineConfig::default(),
    )
}

/// Labels over few tokens, so that they share beginnings and begin each other.
fn any_labels() -> impl Strategy<Value = Vec<Vec<TokenId>>> {
    let label = prop::collection::vec(0_u32..4, 1..8);
    prop::collection::btree_set(label, 1..20).prop_map(|labels| labels.into_iter().collect())
}

/// Prompts of one state with different endings, and sometimes none.
fn any_question() -> impl Strategy<Value = LabelQuestion> {
    let num_ends = 1_usize..=ENDS.len();
    (
        0_u32..50,
        prop::collection::vec(0_u32..4, 0..12),
        any_labels(),
        num_ends,
    )
        .prop_map(|(num_state, ending, labels, num_ends)| {
            let state = (0..=num_state).map(|i| 10 + i % 30);
            LabelQuestion {
                prompt_token_ids: state.chain(ending).collect(),
                labels,
                end_token_ids: ENDS[..num_ends].to_vec(),
                healed_bytes: Vec::new(),
            }
        })
}

fn any_request() -> impl Strategy<Value = DecisionRequest> {
    prop::collection::vec(any_question(), 1..5).prop_map(decision)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn random_tries_have_the_bits_of_paths_alone(asked in any_request(), is_cached in any::<bool>()) {
        let config = EngineConfig {
            prefix_cache: if is_cached { PrefixCache::On } else { PrefixCache::Off },
            ..EngineConfig::default()
        };
        let engine = spawn(model().with_kv_pool(2048, BLOCK_TOKENS), &table(), config);
        let reading = decide(&engine, asked.clone());
        prop_assert_eq!(engine.stats().num_computed_tokens, num_distinct_tokens(&asked));
        for (one, read) in asked.questions.iter().zip(&reading.questions) {
            check_forced(&engine, one, read);
        }
    }

    #[test]
    fn company_moves_no_bit_and_leaves_no_block(
        asked in prop::collection::vec((any_request(), prop::bool::weighted(0.2)), 1..7),
        max_num_seqs in 1_usize..5,
        max_num_batched_tokens in prop::sample::select(vec![8, 24, 64, 512]),
        num_kv_blocks in prop::sample::select(vec![48, 64, 2048]),
        is_cached in any::<bool>(),
    ) {
        let config = EngineConfig {
            max_num_seqs,
            max_num_batched_tokens,
            prefix_cache: if is_cached { PrefixCache::On } else { PrefixCache::Off },
            ..EngineConfig::default()
        };
        check_company(&asked, config, num_kv_blocks);
    }
}

/// Tokens of all paths, what any two begin with alike counted once.
fn num_distinct_tokens(asked: &DecisionRequest) -> u64 {
    let mut beginnings = std::collections::BTreeSet::new();
    for one in &asked.questions {
        for label in &one.labels {
            let path = [one.prompt_token_ids.as_slice(), label].concat();
            beginnings.extend((1..=path.len()).map(|length| path[..length].to_vec()));
        }
    }
    beginnings.len() as u64
}

/// Runs all together, with ordinary requests between them; the number of preemptions.
fn check_company(
    asked: &[(DecisionRequest, bool)],
    config: EngineConfig,
    num_kv_blocks: usize,
) -> u64 {
    let engine = spawn(
        model().with_kv_pool(num_kv_blocks, BLOCK_TOKENS),
        &table(),
        config,
    );
    let plain = |index: usize| {
        request(
            (0..30).map(|i| 10 + (i + index as u32 * 7) % 30).collect(),
            12,
        )
    };
    let mut askers = Vec::new();
    for (index, (one, leaves)) in asked.iter().enumerate() {
        let client = Client::submit(&engine, plain(index)).expect("a sound request");
        let asker = Asker::ask(&engine, one.clone()).expect("a sound request");
        if *leaves {
            asker.leave();
        }
        askers.push((client, asker));
    }
    for (index, ((client, asker), (one, leaves))) in askers.into_iter().zip(asked).enumerate() {
        let reply = client.collect(1).expect("finite rows").remove(0);
        let alone = reply_alone(model(), &table(), plain(index)).expect("finite rows");
        assert_eq!(reply.bits(), alone.bits());
        if *leaves {
            // It may have been through before anyone looked.
            drop(asker);
            continue;
        }
        let reading = asker.outcome().expect("finite rows");
        let alone = decide(&roomy(), one.clone());
        assert_eq!(without_cached_tokens(reading), without_cached_tokens(alone));
    }
    engine.drain();
    assert!(engine.wait_stopped(Duration::from_secs(30)));
    let stats = engine.stats();
    assert_eq!(stats.num_kv_blocks_used, 0, "blocks leaked: {stats:?}");
    assert_eq!((stats.num_running, stats.num_waiting), (0, 0), "{stats:?}");
    stats.num_preemptions
}

/// Many levels in a pool that holds little more than one path: decisions are preempted, fold, and come through.
#[test]
fn preempted_decisions_begin_again_and_end() {
    let labels: Vec<Vec<TokenId>> = (0..81_u32)
        .map(|index| vec![index / 27, index / 9 % 3, index / 3 % 3, index % 3])
        .collect();
    let asked: Vec<(DecisionRequest, bool)> = (0..6)
        .map(|index| {
            let questions = (0..4)
                .map(|ending| LabelQuestion {
                    prompt_token_ids: (0..21 + index)
                        .map(|i| 10 + i % 30)
                        .chain([ending])
                        .collect(),
                    labels: labels.clone(),
                    end_token_ids: ENDS.to_vec(),
                    healed_bytes: Vec::new(),
                })
                .collect();
            (decision(questions), false)
        })
        .collect();
    for prefix_cache in [PrefixCache::On, PrefixCache::Off] {
        let config = EngineConfig {
            max_num_batched_tokens: 40,
            prefix_cache,
            ..EngineConfig::default()
        };
        assert!(
            check_company(&asked, config, 20) > 0,
            "nothing was preempted"
        );
    }
}

#[test]
fn one_place_holds_a_decision_with_all_its_branches() {
    let config = EngineConfig {
        max_num_seqs: 1,
        ..EngineConfig::default()
    };
    let model = model();
    let batch_sizes = model.batch_sizes();
    let engine = spawn(model, &table(), config);
    let labels: Vec<Vec<TokenId>> = (0..40).map(|id| vec![id]).collect();
    let labels: Vec<&[TokenId]> = labels.iter().map(Vec::as_slice).collect();
    decide(
        &engine,
        decision(vec![question(vec![1; 30], &labels, &ENDS)]),
    );
    let batch_sizes = batch_sizes.lock().expect("never poisoned").clone();
    assert_eq!(batch_sizes, [1, 40], "the prompt, then all labels at once");
}

#[test]
fn a_client_that_leaves_frees_its_place_within_a_step() {
    let gate = StepGate::default();
    gate.close();
    let config = EngineConfig {
        max_num_seqs: 1,
        max_num_batched_tokens: 16,
        ..EngineConfig::default()
    };
    let engine = spawn(model().with_gate(&gate), &table(), config);
    let labels: Vec<Vec<TokenId>> = (0..40).map(|id| vec![id, 1]).collect();
    let labels: Vec<&[TokenId]> = labels.iter().map(Vec::as_slice).collect();
    let asker = Asker::ask(
        &engine,
        decision(vec![question(vec![1; 10], &labels, &ENDS)]),
    );
    let asker = asker.expect("a sound request");
    gate.let_through(2);
    gate.wait_held();
    wait_for(&engine, |engine| engine.stats().num_steps == 3);
    assert!(engine.stats().num_kv_blocks_used > 2, "it has forked");
    asker.leave();
    let next = Client::submit(&engine, request(vec![6], 1)).expect("a sound request");
    gate.let_through(1);
    wait_for(&engine, |engine| engine.stats().num_cancelled == 1);
    gate.open();
    next.collect(1).expect("finite rows");
    wait_for(&engine, |engine| engine.stats().num_kv_blocks_used == 0);
    asker.assert_silent();
}

fn wait_for(engine: &EngineHandle, holds: impl Fn(&EngineHandle) -> bool) {
    let begin = Instant::now();
    while !holds(engine) {
        assert!(
            begin.elapsed() < Duration::from_secs(20),
            "{:?}",
            engine.stats()
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// V6: only the decision whose row it is.
#[test]
fn a_row_that_is_not_finite_fails_its_decision_alone() {
    let model = ScriptedModel::new(VOCAB, |history| match history {
        [.., 7] => nan_row(VOCAB),
        _ => background_row(VOCAB, history),
    });
    let engine = spawn(model, &table(), EngineConfig::default());
    let ask = |labels: &[&[TokenId]]| {
        Asker::ask(
            &engine,
            decision(vec![question(vec![1; 12], labels, &ENDS)]),
        )
        .expect("sound")
    };
    let (bad, good) = (ask(&[&[7], &[8, 9]]), ask(&[&[8, 9], &[6]]));
    assert_eq!(
        bad.outcome(),
        Err(RequestError::NumericalError { position: 12 })
    );
    good.outcome().expect("finite rows");
    wait_for(&engine, |engine| engine.stats().num_kv_blocks_used == 0);
    let stats = engine.stats();
    assert_eq!(
        (
            stats.num_numerical_errors,
            stats.num_failed,
            stats.num_decisions
        ),
        (1, 1, 1)
    );
}

/// A prompt's row that nobody reads may hold anything.
#[test]
fn rows_that_are_not_read_are_not_asked_for() {
    let num_rows = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counter = std::sync::Arc::clone(&num_rows);
    let model = ScriptedModel::new(VOCAB, move |history| {
        counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        background_row(VOCAB, history)
    });
    let engine = spawn(model, &table(), EngineConfig::default());
    let state: Vec<TokenId> = (0..50).map(|i| 10 + i % 30).collect();
    let asked = (0..3)
        .map(|index| {
            question(
                [state.as_slice(), &[index, 45]].concat(),
                &[&[1, 2], &[3]],
                &ENDS,
            )
        })
        .collect();
    decide(&engine, decision(asked));
    let num_rows = num_rows.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(num_rows, 3 * 4, "three prompts' ends and three edges each");
}

#[test]
fn an_engine_that_stops_says_so() {
    let gate = StepGate::default();
    gate.close();
    let engine = spawn(model().with_gate(&gate), &table(), EngineConfig::default());
    let ask =
        || Asker::ask(&engine, decision(vec![question(vec![1], &[&[2]], &ENDS)])).expect("sound");
    let running = ask();
    gate.wait_held();
    let queued = ask();
    engine.stop();
    gate.open();
    assert_eq!(queued.outcome(), Err(RequestError::EngineStopped));
    let _ = running.outcome();
}
