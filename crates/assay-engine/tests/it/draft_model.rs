//! A second model that drafts: where it agrees, tokens come sooner; where it does not, nothing is different. The
//! scripted one reads its history back through its own blocks, so a wrong slot there would change its guesses, and
//! a missing one would end the engine.

use std::sync::Arc;
use std::time::Duration;

use assay_engine::{
    DraftModel, Engine, EngineConfig, EngineHandle, EngineStats, Request, SpawnError, Speculation,
    TokenBytes,
};
use assay_formats::DType;
use assay_models::{ForwardModel, TokenId};
use assay_testkit::scripted::{ScriptedModel, background_row, nan_row};
use assay_testkit::tiny_model::TinyModel;

use crate::collect::{ChoiceReply, Client, request, spawn, without_cached_tokens};
use crate::real_path;
use crate::speculation::{BLOCK_TOKENS, Row, assert_accepted_and_rejected, echoing, prompt, vocab};

fn config(speculation: Speculation) -> EngineConfig {
    EngineConfig {
        speculation,
        ..EngineConfig::default()
    }
}

fn spawn_drafting(
    model: impl ForwardModel + 'static,
    draft: impl ForwardModel + 'static,
    token_bytes: &[Vec<u8>],
    config: EngineConfig,
) -> EngineHandle {
    let draft_model = DraftModel {
        model: Box::new(draft),
        relative_cost: 0.1,
    };
    let token_bytes = Arc::new(TokenBytes::new(token_bytes));
    Engine::spawn_with_draft_model(Box::new(model), draft_model, token_bytes, config)
        .expect("a valid configuration")
}

fn target() -> ScriptedModel {
    ScriptedModel::new(vocab().vocab_size(), echoing).with_kv_pool(512, BLOCK_TOKENS)
}

/// Mostly of the target's mind, and broken at times.
fn nearly_echoing(history: &[TokenId]) -> Vec<f32> {
    let vocab_size = vocab().vocab_size();
    match history.len() % 13 {
        4 => background_row(vocab_size, &history[1..]),
        8 => nan_row(vocab_size),
        _ => echoing(history),
    }
}

fn draft(row: Row, num_kv_blocks: usize) -> ScriptedModel {
    ScriptedModel::new(vocab().vocab_size(), row).with_kv_pool(num_kv_blocks, 3)
}

/// Everyone's replies; those who leave after so many events have none.
fn run(engine: &EngineHandle, visits: &[(Request, Option<usize>)]) -> Vec<Vec<ChoiceReply>> {
    let clients: Vec<Client> = visits
        .iter()
        .map(|(request, _)| Client::submit(engine, request.clone()).expect("a valid request"))
        .collect();
    let mut replies = Vec::new();
    for (client, (request, leaves_after)) in clients.into_iter().zip(visits) {
        replies.push(match leaves_after {
            Some(num_events) => {
                client.read_at_most(*num_events);
                client.leave();
                Vec::new()
            }
            None => {
                let replies = client.collect(request.num_choices);
                without_cached_tokens(replies.expect("no failure"))
            }
        });
    }
    engine.drain();
    assert!(engine.wait_stopped(Duration::from_secs(30)));
    assert_eq!(engine.stats().num_kv_blocks_used, 0);
    replies
}

/// Runs the visits without drafts and with a draft model; what the drafts did.
fn check_equals_plain(
    visits: &[(Request, Option<usize>)],
    num_kv_blocks: usize,
    num_draft_blocks: usize,
    speculation: Speculation,
) -> EngineStats {
    let small = |model: ScriptedModel| model.with_kv_pool(num_kv_blocks, BLOCK_TOKENS);
    let token_bytes = vocab();
    let token_bytes = token_bytes.token_bytes();
    let plain = spawn(small(target()), token_bytes, config(Speculation::Off));
    let draft = draft(nearly_echoing, num_draft_blocks);
    let drafting = spawn_drafting(small(target()), draft, token_bytes, config(speculation));
    assert_eq!(run(&drafting, visits), run(&plain, visits));
    drafting.stats()
}

fn visits(num_requests: u32) -> Vec<(Request, Option<usize>)> {
    (0..num_requests)
        .map(|index| {
            let mut request = request(prompt().repeat(1 + index as usize % 3), 60);
            request.num_choices = 1 + index % 2;
            request.sampling.temperature = [0.0, 0.7, 1.0, 2.0][index as usize % 4];
            request.sampling.frequency_penalty = [0.0, 0.0, 0.3][index as usize % 3];
            request.sampling.seed = u64::from(index);
            (request, (index % 5 == 4).then_some(9))
        })
        .collect()
}

#[test]
fn alone_each_request_gets_what_plain_decoding_gives() {
    for speculation in [Speculation::Off, Speculation::Ngram] {
        for visit in visits(8) {
            let stats = check_equals_plain(&[(visit.0, None)], 512, 512, speculation);
            assert_accepted_and_rejected(&stats);
        }
    }
}

/// Also where the draft model has no room for all of them, and where the target preempts.
#[test]
fn together_each_request_gets_what_plain_decoding_gives() {
    for (num_kv_blocks, num_draft_blocks) in [(512, 512), (512, 60), (60, 512), (60, 40)] {
        for speculation in [Speculation::Off, Speculation::Ngram] {
            let visits = visits(7);
            let stats = check_equals_plain(&visits, num_kv_blocks, num_draft_blocks, speculation);
            assert!(stats.num_accepted_tokens > 0, "{stats:?}");
            assert!(
                stats.num_draft_tokens > stats.num_accepted_tokens,
                "{stats:?}"
            );
            assert_eq!(stats.num_preemptions > 0, num_kv_blocks == 60, "{stats:?}");
        }
    }
}

/// A copy of the model whose weights are a little off: it guesses well, not always.
fn noisy_copy(file: &TinyModel, noise: f32) -> TinyModel {
    let mut noisy = file.clone();
    let norms = noisy
        .tensors
        .iter_mut()
        .filter(|tensor| tensor.dtype == DType::F32);
    for tensor in norms {
        for (index, value) in tensor.bytes.chunks_exact_mut(4).enumerate() {
            let exact = f32::from_le_bytes(value.try_into().expect("four bytes"));
            let off = exact * (1.0 + (index % 7) as f32 * noise);
            value.copy_from_slice(&off.to_le_bytes());
        }
    }
    noisy
}

fn check_tiny(file: &TinyModel, noise: f32) {
    let visits: Vec<(Request, Option<usize>)> = real_path::requests()
        .into_iter()
        .map(|request| (request, None))
        .collect();
    let token_bytes = real_path::token_bytes();
    let model = || real_path::load(file, 2, 64);
    // Two at a time: rows are cheap enough for drafts to be tried.
    let few = EngineConfig {
        max_num_seqs: 2,
        ..config(Speculation::Off)
    };
    let plain = spawn(model(), &token_bytes, few);
    let expected = run(&plain, &visits);
    let draft = real_path::load(&noisy_copy(file, noise), 1, 64);
    let drafting = spawn_drafting(model(), draft, &token_bytes, few);
    assert_eq!(run(&drafting, &visits), expected);
    let stats = drafting.stats();
    assert!(stats.num_accepted_tokens > 0, "{stats:?}");
    assert!(
        stats.num_draft_tokens > stats.num_accepted_tokens,
        "{stats:?}"
    );
    assert!(stats.num_steps < plain.stats().num_steps, "{stats:?}");
}

#[test]
fn a_noisy_copy_drafts_for_llama() {
    check_tiny(&TinyModel::llama(), 0.01);
}

#[test]
fn a_noisy_copy_drafts_for_gemma3() {
    check_tiny(&TinyModel::gemma3(), 0.1);
}

#[test]
fn a_draft_model_of_another_width_is_refused() {
    let draft_model = DraftModel {
        model: Box::new(ScriptedModel::new(7, |_| vec![0.0; 7])),
        relative_cost: 0.1,
    };
    let token_bytes = Arc::new(TokenBytes::new(vocab().token_bytes()));
    let spawned = Engine::spawn_with_draft_model(
        Box::new(target()),
        draft_model,
        token_bytes,
        EngineConfig::default(),
    );
    let Err(SpawnError::InvalidConfig { field, reason }) = spawned.map(|_| ()) else {
        panic!("it started");
    };
    assert_eq!(field, "draft_model");
    assert!(reason.contains("7 tokens"), "{reason}");
}
