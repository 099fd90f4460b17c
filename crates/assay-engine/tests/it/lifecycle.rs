//! Arrival, cancellation, failure and the end of an engine.

use std::time::{Duration, Instant};

use assay_engine::{
    EngineConfig, EngineHandle, EngineState, EngineStats, FinishReason, LogprobsMode,
    LogprobsParams, OutputEvent, Request, RequestError, SamplingParams, SubmitError,
};
use assay_testkit::scripted::{
    ScriptedModel, ScriptedVocab, StepGate, background_row, forcing_row, nan_row,
};

use crate::collect::{Client, request, spawn};

const PATIENCE: Duration = Duration::from_secs(20);

fn vocab() -> ScriptedVocab {
    ScriptedVocab::new(["ab"])
}

fn model() -> ScriptedModel {
    let vocab_size = vocab().vocab_size();
    ScriptedModel::new(vocab_size, move |history| {
        background_row(vocab_size, history)
    })
}

/// An engine whose steps are held until the gate lets them through.
fn held_engine(config: EngineConfig) -> (EngineHandle, StepGate) {
    let gate = StepGate::default();
    gate.close();
    let engine = spawn(model().with_gate(&gate), vocab().token_bytes(), config);
    (engine, gate)
}

fn submit(engine: &EngineHandle, request: Request) -> Client {
    Client::submit(engine, request).expect("a valid request")
}

/// Waits until the statistics are as `holds` says.
fn wait_for(engine: &EngineHandle, what: &str, holds: impl Fn(&EngineStats) -> bool) {
    let begin = Instant::now();
    while !holds(&engine.stats()) {
        assert!(begin.elapsed() < PATIENCE, "{what}: {:?}", engine.stats());
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn one_at_a_time() -> EngineConfig {
    EngineConfig {
        max_num_seqs: 1,
        max_num_batched_tokens: 16,
        queue_limit: 2,
        ..EngineConfig::default()
    }
}

#[test]
fn a_full_queue_refuses_and_recovers() {
    let (engine, gate) = held_engine(one_at_a_time());
    let running = submit(&engine, request(vec![1], 2));
    gate.wait_held();
    let queued = [
        submit(&engine, request(vec![2], 2)),
        submit(&engine, request(vec![3], 2)),
    ];
    let refused = Client::submit(&engine, request(vec![4], 2)).err();
    assert_eq!(refused, Some(SubmitError::QueueFull { queue_limit: 2 }));
    let stats = engine.stats();
    assert_eq!((stats.num_running, stats.num_waiting), (1, 2));

    gate.open();
    running.collect(1).expect("no failure");
    for client in queued {
        client.collect(1).expect("no failure");
    }
    submit(&engine, request(vec![4], 2))
        .collect(1)
        .expect("room again");
    assert_eq!(engine.stats().num_finished_length, 4);
}

/// No work for a queued request whose client has gone.
#[test]
fn fault_153_a_queued_request_whose_client_left_never_runs() {
    let (engine, gate) = held_engine(one_at_a_time());
    let running = submit(&engine, request(vec![1], 2));
    gate.wait_held();
    let queued = submit(&engine, request(vec![2; 10], 2));
    queued.leave();
    gate.open();
    running.collect(1).expect("no failure");
    wait_for(&engine, "the queued one is dropped", |s| {
        s.num_cancelled == 1
    });
    let stats = engine.stats();
    assert_eq!(stats.num_computed_tokens, 2, "only the first one's rows");
    assert_eq!(stats.num_waiting, 0);
    queued.assert_silent();
}

/// O4: prefill and decode, slot and blocks free after one step.
fn check_leaving_frees_within_a_step(num_prompt: usize, num_steps_before: usize) {
    let (engine, gate) = held_engine(one_at_a_time());
    let client = submit(&engine, request(vec![5; num_prompt], 30));
    gate.let_through(num_steps_before);
    wait_for(&engine, "steps before", |s| {
        s.num_steps == num_steps_before as u64 + 1
    });
    gate.wait_held();
    assert!(engine.stats().num_kv_blocks_used > 0);
    client.leave();
    let next = submit(&engine, request(vec![6], 1));
    gate.let_through(1);
    // The next step is the other client's: its place is free.
    wait_for(&engine, "cancelled", |s| s.num_cancelled == 1);
    gate.wait_held();
    let stats = engine.stats();
    assert_eq!(stats.num_steps, num_steps_before as u64 + 2);
    assert_eq!((stats.num_running, stats.num_waiting), (1, 0), "{stats:?}");
    gate.open();
    let reply = next.collect(1).expect("no failure");
    assert_eq!(reply[0].entries.len(), 1);
    wait_for(&engine, "blocks free", |s| s.num_kv_blocks_used == 0);
}

#[test]
fn fault_155_fault_157_leaving_in_prefill_frees_within_a_step() {
    check_leaving_frees_within_a_step(100, 1);
}

#[test]
fn fault_154_leaving_in_decode_frees_within_a_step() {
    check_leaving_frees_within_a_step(10, 3);
}

#[test]
fn fault_159_an_abandoned_channel_is_a_cancel() {
    let (engine, gate) = held_engine(EngineConfig::default());
    let client = submit(&engine, request(vec![5], 30));
    gate.wait_held();
    drop(client);
    gate.open();
    wait_for(&engine, "cancelled", |s| s.num_cancelled == 1);
    assert_eq!(engine.stats().num_kv_blocks_used, 0);
    assert_eq!(engine.state(), EngineState::Running);
}

/// V6: the failure is the request's own.
#[test]
fn a_nan_row_fails_its_request_and_no_neighbour() {
    let vocab_size = vocab().vocab_size();
    let gate = StepGate::default();
    gate.close();
    let scripted = |history: &[u32]| {
        if history[0] == 99 && history.len() == 7 {
            nan_row(vocab().vocab_size())
        } else {
            background_row(vocab().vocab_size(), history)
        }
    };
    let model = ScriptedModel::new(vocab_size, scripted).with_gate(&gate);
    let engine = spawn(model, vocab().token_bytes(), EngineConfig::default());
    let neighbour = submit(&engine, request(vec![1, 2, 3], 12));
    let mut doomed = request(vec![99, 2, 3], 12);
    doomed.num_choices = 2;
    let doomed = submit(&engine, doomed);
    gate.wait_held();
    gate.open();
    assert_eq!(
        doomed.collect(2).expect_err("its row holds NaN"),
        RequestError::NumericalError { position: 6 }
    );
    let reply = neighbour.collect(1).expect("untouched");
    let engine_alone = spawn(
        self::model(),
        vocab().token_bytes(),
        EngineConfig::default(),
    );
    let alone = submit(&engine_alone, request(vec![1, 2, 3], 12))
        .collect(1)
        .expect("no failure");
    assert_eq!(reply, alone);
    let stats = engine.stats();
    assert_eq!((stats.num_numerical_errors, stats.num_failed), (1, 2));
    assert_eq!(stats.num_kv_blocks_used, 0);
}

/// R8: each choice its own stream, whatever the places in a batch.
#[test]
fn fault_106_fault_107_more_choices_than_places_queue_and_keep_their_streams() {
    let replies = |num_choices, max_num_seqs| {
        let config = EngineConfig {
            max_num_seqs,
            ..EngineConfig::default()
        };
        let engine = spawn(model(), vocab().token_bytes(), config);
        let mut request = request(vec![1, 2, 3], 8);
        request.num_choices = num_choices;
        request.sampling = SamplingParams {
            temperature: 1.0,
            seed: 17,
            ..SamplingParams::greedy()
        };
        submit(&engine, request)
            .collect(num_choices)
            .expect("no failure")
    };
    let wide = replies(10, 32);
    assert_eq!(replies(10, 3), wide);
    assert_eq!(replies(1, 8)[0], wide[0], "choice 0 does not see n");
    for (index, reply) in wide.iter().enumerate() {
        for other in &wide[..index] {
            assert_ne!(reply.token_ids(), other.token_ids(), "choice {index}");
        }
    }
}

#[test]
fn drain_finishes_what_it_has_and_takes_no_more() {
    let (engine, gate) = held_engine(one_at_a_time());
    let first = submit(&engine, request(vec![1], 3));
    gate.wait_held();
    let second = submit(&engine, request(vec![2], 3));
    engine.drain();
    assert_eq!(
        Client::submit(&engine, request(vec![3], 3)).err(),
        Some(SubmitError::Draining)
    );
    assert!(!engine.wait_stopped(Duration::from_millis(1)));
    gate.open();
    for client in [first, second] {
        assert_eq!(client.collect(1).expect("finished")[0].entries.len(), 3);
    }
    assert!(engine.wait_stopped(PATIENCE));
    assert_eq!(engine.state(), EngineState::Stopped);
    assert_eq!(
        Client::submit(&engine, request(vec![3], 3)).err(),
        Some(SubmitError::Stopped)
    );
}

#[test]
fn an_idle_engine_drains_and_stops_at_once() {
    let engine = spawn(model(), vocab().token_bytes(), EngineConfig::default());
    engine.drain();
    assert!(engine.wait_stopped(PATIENCE));
    let engine = spawn(model(), vocab().token_bytes(), EngineConfig::default());
    engine.stop();
    assert!(engine.wait_stopped(PATIENCE));
}

#[test]
fn stop_tells_running_and_queued_requests() {
    let (engine, gate) = held_engine(one_at_a_time());
    let running = submit(&engine, request(vec![1], 30));
    gate.wait_held();
    let queued = submit(&engine, request(vec![2], 30));
    engine.stop();
    gate.open();
    for client in [running, queued] {
        assert_eq!(
            client.collect(1).expect_err("stopped"),
            RequestError::EngineStopped
        );
    }
    assert!(engine.wait_stopped(PATIENCE));
    assert_eq!(engine.state(), EngineState::Stopped);
}

#[test]
fn the_last_handle_takes_the_engine_with_it() {
    let (engine, gate) = held_engine(EngineConfig::default());
    let client = submit(&engine, request(vec![1], 30));
    gate.wait_held();
    let other = engine.clone();
    drop(engine);
    assert_eq!(other.state(), EngineState::Running);
    drop(other);
    gate.open();
    assert_eq!(
        client.collect(1).expect_err("stopped"),
        RequestError::EngineStopped
    );
}

/// A broken invariant ends the engine, tells everybody, and shows in its state.
#[test]
fn fault_126_a_panicking_step_ends_the_engine_in_order() {
    let vocab_size = vocab().vocab_size();
    let gate = StepGate::default();
    gate.close();
    let model = ScriptedModel::new(vocab_size, move |history| {
        assert!(history.len() < 5, "the script breaks on purpose");
        background_row(vocab_size, history)
    })
    .with_gate(&gate);
    let engine = spawn(model, vocab().token_bytes(), one_at_a_time());
    let running = submit(&engine, request(vec![1], 30));
    gate.wait_held();
    let queued = submit(&engine, request(vec![2], 30));
    gate.open();
    for client in [running, queued] {
        assert_eq!(
            client.collect(1).expect_err("dead"),
            RequestError::EngineStopped
        );
    }
    assert!(engine.wait_stopped(PATIENCE));
    assert_eq!(engine.state(), EngineState::Dead);
    assert_eq!(
        Client::submit(&engine, request(vec![3], 3)).err(),
        Some(SubmitError::Stopped)
    );
}

/// S4: the end token has no entry; asked for, it comes apart, with its scores.
#[test]
fn the_ending_token_is_reported_where_asked() {
    let vocab_size = vocab().vocab_size();
    let end_token_id = vocab().end_token_id();
    let engine = spawn(
        ScriptedModel::new(vocab_size, move |history| {
            let next = if history.len() == 2 { 65 } else { end_token_id };
            forcing_row(vocab_size, history, next)
        }),
        vocab().token_bytes(),
        EngineConfig::default(),
    );
    let ending = |include_end, stop: &[&str]| {
        let mut request = request(vec![1, 2], 9);
        request.end_token_ids = vec![end_token_id];
        request.stop = stop.iter().map(|&s| s.to_owned()).collect();
        request.logprobs = Some(LogprobsParams {
            top_logprobs: 2,
            mode: LogprobsMode::Raw,
            include_end,
        });
        let mut replies = submit(&engine, request).collect(1).expect("no failure");
        replies.remove(0)
    };
    let reply = ending(true, &[]);
    assert_eq!(reply.text(), "A");
    assert_eq!(reply.finish, Some(FinishReason::EndToken(end_token_id)));
    let end = reply.end.expect("asked for");
    assert_eq!(end.token_id, end_token_id);
    let scores = end.logprobs.expect("asked for");
    assert_eq!(scores.top_logprobs[0].token_id, end_token_id);
    assert_eq!(
        scores.top_logprobs[0].logprob.to_bits(),
        scores.logprob.to_bits()
    );
    assert_eq!(ending(false, &[]).end, None);

    let stopped = ending(true, &["A"]);
    assert_eq!(stopped.text(), "");
    assert!(stopped.entries.is_empty());
    assert_eq!(stopped.end.map(|end| end.token_id), Some(65));
}

/// O2: A's tail is held by its stop string while B generates; each spells its own.
#[test]
fn fault_51_fault_105_held_text_stays_with_its_own_request() {
    let vocab_size = vocab().vocab_size();
    let gate = StepGate::default();
    gate.close();
    let model = ScriptedModel::new(vocab_size, move |history| {
        let own = history[0];
        let next = if history.len() % 3 == 0 {
            u32::from(b'.')
        } else {
            own
        };
        forcing_row(vocab_size, history, next)
    })
    .with_gate(&gate);
    let engine = spawn(model, vocab().token_bytes(), EngineConfig::default());
    let clients: Vec<Client> = (b'A'..=b'F')
        .map(|letter| {
            let mut request = request(vec![u32::from(letter)], 8);
            request.stop = vec![".!".to_owned()];
            submit(&engine, request)
        })
        .collect();
    gate.wait_held();
    gate.open();
    for (letter, client) in ('A'..='F').zip(clients) {
        let reply = client.collect(1).expect("no failure").remove(0);
        let expected: String = [letter, letter, '.'].iter().cycle().take(8).collect();
        assert_eq!(reply.text(), expected);
        assert_eq!(reply.entries.len(), 8);
        assert_eq!(reply.deltas.concat(), expected);
    }
}

/// Events stop with the failure: nothing follows it.
#[test]
fn nothing_follows_a_failure() {
    let vocab_size = vocab().vocab_size();
    let engine = spawn(
        ScriptedModel::new(vocab_size, move |_| nan_row(vocab_size)),
        vocab().token_bytes(),
        EngineConfig::default(),
    );
    let mut request = request(vec![1], 5);
    request.num_choices = 4;
    let client = submit(&engine, request);
    assert!(matches!(client.next_event(), OutputEvent::Failed(_)));
    wait_for(&engine, "idle", |s| s.num_running + s.num_waiting == 0);
    client.assert_silent();
}
