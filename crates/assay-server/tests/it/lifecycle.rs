//! Clients that go, queues that fill, servers that wind down.

use std::time::Duration;

use assay_engine::EngineConfig;
use axum::http::StatusCode;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::world::{CHAT, Served, Setup, World, ask, ask_message, with};

/// Waits until `holds`; a server that never gets there fails the test with its numbers.
async fn eventually(world: &World, what: &str, holds: impl Fn(&assay_engine::EngineStats) -> bool) {
    for _ in 0..1_000 {
        if holds(&world.engine.stats()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{what}: {:?}", world.engine.stats());
}

async fn post_raw(address: std::net::SocketAddr, body: &Value) -> TcpStream {
    let body = body.to_string();
    let head = format!(
        "POST {CHAT} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.write_all(head.as_bytes()).await.expect("sent");
    stream.write_all(body.as_bytes()).await.expect("sent");
    stream
}

async fn held(world: &World) {
    let gate = world.gate.clone();
    tokio::task::spawn_blocking(move || gate.wait_held())
        .await
        .expect("held");
}

fn endless(stream: bool) -> Value {
    with(
        ask_message("#flat 90#"),
        json!({"stream": stream, "max_tokens": 3_000, "temperature": 1, "n": 2}),
    )
}

#[tokio::test]
async fn o4_fault_154_fault_155_fault_158_a_client_gone_in_decode_frees_its_slot_within_a_step() {
    for stream in [true, false] {
        let Served { world, address, .. } = Setup::default().serve().await;
        let client = post_raw(address, &endless(stream)).await;
        eventually(&world, "decoding", |stats| stats.num_generation_tokens > 6).await;
        world.gate.close();
        held(&world).await;
        drop(client);
        // The server hears of the closed socket while the step is held.
        tokio::time::sleep(Duration::from_millis(100)).await;
        let steps = world.engine.stats().num_steps;
        world.gate.let_through(1);
        eventually(&world, "cancelled", |stats| stats.num_cancelled == 2).await;
        let stats = world.engine.stats();
        assert_eq!(
            (stats.num_running, stats.num_kv_blocks_used),
            (0, 0),
            "stream: {stream}"
        );
        assert!(stats.num_steps <= steps + 1, "stream: {stream}");
        world.gate.open();
        let next = world
            .reply(&with(ask("next"), json!({"logprobs": true})))
            .await;
        let entries = next["choices"][0]["logprobs"]["content"]
            .as_array()
            .expect("entries");
        let spelled: String = entries
            .iter()
            .map(|entry| entry["token"].as_str().expect("text"))
            .collect();
        assert_eq!(spelled, "next", "its entries are its own and complete");
    }
}

/// What a client used before it left is counted all the same.
#[tokio::test]
async fn fault_167_tokens_of_a_stream_that_was_left_are_counted() {
    let Served { world, address, .. } = Setup::default().serve().await;
    let client = post_raw(address, &endless(true)).await;
    eventually(&world, "decoding", |stats| stats.num_generation_tokens > 6).await;
    drop(client);
    eventually(&world, "cancelled", |stats| stats.num_cancelled == 2).await;
    let stats = world.engine.stats();
    let metrics = world.get("/metrics").await.expect_status(StatusCode::OK);
    let text = String::from_utf8(metrics.body.to_vec()).expect("UTF-8");
    for (name, count) in [
        ("vllm:generation_tokens_total", stats.num_generation_tokens),
        ("vllm:prompt_tokens_total", stats.num_prompt_tokens),
        ("assay_requests_cancelled_total", 2),
    ] {
        let line = format!("{name}{{model_name=\"scripted\"}} {count}\n");
        assert!(count > 0 && text.contains(&line), "{line}{text}");
    }
}

#[tokio::test]
async fn o4_fault_157_a_client_gone_in_prefill_is_dropped() {
    for stream in [true, false] {
        let setup = Setup {
            engine: EngineConfig {
                max_num_batched_tokens: 16,
                ..EngineConfig::default()
            },
            ..Setup::default()
        };
        setup.gate.close();
        let Served { world, address, .. } = setup.serve().await;
        let body = with(ask_message(&"long ".repeat(200)), json!({"stream": stream}));
        let client = post_raw(address, &body).await;
        held(&world).await;
        drop(client);
        tokio::time::sleep(Duration::from_millis(100)).await;
        world.gate.let_through(1);
        eventually(&world, "cancelled", |stats| stats.num_cancelled == 1).await;
        let stats = world.engine.stats();
        assert_eq!(
            (stats.num_generation_tokens, stats.num_kv_blocks_used),
            (0, 0)
        );
        assert!(
            stats.num_computed_tokens <= 32,
            "dropped between chunks: {stats:?}"
        );
        world.gate.open();
    }
}

#[tokio::test]
async fn fault_153_a_queued_client_that_has_gone_costs_no_work() {
    let setup = Setup {
        engine: EngineConfig {
            max_num_seqs: 1,
            ..EngineConfig::default()
        },
        ..Setup::default()
    };
    setup.gate.close();
    let Served { world, address, .. } = setup.serve().await;
    let _first = post_raw(address, &with(ask("first"), json!({"stream": true}))).await;
    held(&world).await;
    let second = post_raw(address, &ask_message(&"long ".repeat(200))).await;
    eventually(&world, "queued", |stats| stats.num_waiting == 1).await;
    drop(second);
    tokio::time::sleep(Duration::from_millis(100)).await;
    world.gate.open();
    eventually(&world, "both ended", |stats| {
        stats.num_cancelled == 1 && stats.num_finished_end_token == 1
    })
    .await;
    assert_eq!(
        world.engine.stats().num_generation_tokens,
        6,
        "only the first was worked on"
    );
}

#[tokio::test]
async fn fault_159_many_clients_leave_and_the_server_stays() {
    let Served { world, address, .. } = Setup::default().serve().await;
    for round in 0..40 {
        let mut client = post_raw(address, &endless(round % 2 == 0)).await;
        if round % 3 == 0 {
            let mut begin = [0; 64];
            if round % 2 == 0 {
                let _ = client.read(&mut begin).await;
            }
        }
        drop(client);
    }
    eventually(&world, "all gone", |stats| {
        stats.num_running == 0 && stats.num_waiting == 0
    })
    .await;
    assert_eq!(world.engine.stats().num_kv_blocks_used, 0);
    let reply = world.reply(&ask("still here")).await;
    assert_eq!(reply["choices"][0]["message"]["content"], "still here");
}

#[tokio::test]
async fn a_full_queue_is_429_with_retry_after() {
    let setup = Setup {
        engine: EngineConfig {
            max_num_seqs: 1,
            queue_limit: 2,
            ..EngineConfig::default()
        },
        ..Setup::default()
    };
    setup.gate.close();
    let world = setup.build();
    let first = tokio::spawn({
        let world = world.clone();
        async move { world.reply(&ask("first")).await }
    });
    held(&world).await;
    let mut queued = Vec::new();
    for n in 1..=2 {
        let waiting = world.clone();
        queued.push(tokio::spawn(
            async move { waiting.reply(&ask("queued")).await },
        ));
        eventually(&world, "queued", |stats| stats.num_waiting == n).await;
    }
    for stream in [false, true] {
        let answer = world
            .post(&with(ask("one too many"), json!({"stream": stream})))
            .await;
        let error = answer.error(StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(error["code"], "queue_full");
        assert_eq!(answer.header("retry-after"), Some("1"));
    }
    world.gate.open();
    assert_eq!(
        first.await.expect("answered")["choices"][0]["message"]["content"],
        "first"
    );
    for one in queued {
        assert_eq!(
            one.await.expect("answered")["choices"][0]["message"]["content"],
            "queued"
        );
    }
}

/// Choices queue like requests; a request is taken whole as long as the queue has any place.
#[tokio::test]
async fn choices_count_against_the_queue() {
    let setup = Setup {
        engine: EngineConfig {
            max_num_seqs: 1,
            queue_limit: 4,
            ..EngineConfig::default()
        },
        ..Setup::default()
    };
    setup.gate.close();
    let world = setup.build();
    let send = |n: usize| {
        let world = world.clone();
        let body = with(ask("choices"), json!({"n": n}));
        tokio::spawn(async move { world.reply(&body).await })
    };
    let first = send(1);
    held(&world).await;
    let three = send(3);
    eventually(&world, "three wait", |stats| stats.num_waiting == 3).await;
    let nine = send(9);
    eventually(&world, "twelve wait", |stats| stats.num_waiting == 12).await;
    let answer = world.post(&ask("one too many")).await;
    let error = answer.error(StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(error["code"], "queue_full");
    world.gate.open();
    for (sent, n) in [(first, 1), (three, 3), (nine, 9)] {
        let reply = sent.await.expect("answered");
        let choices = reply["choices"].as_array().expect("choices");
        assert_eq!(choices.len(), n);
        for choice in choices {
            assert_eq!(choice["message"]["content"], "choices");
        }
    }
    world.reply(&ask("room again")).await;
}

#[tokio::test]
async fn draining_finishes_running_work_and_refuses_new() {
    let setup = Setup::default();
    setup.gate.close();
    let Served {
        world,
        address,
        trigger,
        serving,
    } = setup.serve().await;
    let url = format!("http://{address}{CHAT}");
    let client = reqwest::Client::new();
    let running = client
        .post(&url)
        .json(&with(ask("finish me"), json!({"stream": true})));
    let running = running.send().await.expect("headers");
    held(&world).await;

    trigger.signal();
    for _ in 0..200 {
        if reqwest::get(format!("http://{address}/ready"))
            .await
            .expect("an answer")
            .status()
            != StatusCode::OK
        {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let refused = client
        .post(&url)
        .json(&ask("too late"))
        .send()
        .await
        .expect("an answer");
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(refused.headers().contains_key("retry-after"));
    let error: Value = refused.json().await.expect("JSON");
    assert_eq!(error["error"]["code"], "shutting_down");
    let health = reqwest::get(format!("http://{address}/health"))
        .await
        .expect("an answer");
    assert_eq!(health.status(), StatusCode::OK, "still alive");
    assert!(!serving.is_finished());

    world.gate.open();
    let text = running.text().await.expect("the whole stream");
    assert!(
        text.contains("\"finish_reason\":\"stop\"") && text.ends_with("data: [DONE]\n\n"),
        "{text}"
    );
    let ended = tokio::time::timeout(Duration::from_secs(10), serving).await;
    ended.expect("in time").expect("no panic").expect("served");
    assert!(
        TcpStream::connect(address).await.is_err(),
        "the port is closed"
    );
}

#[tokio::test]
async fn a_second_signal_and_the_drain_timeout_both_stop() {
    for second_signal in [true, false] {
        let mut setup = Setup::default();
        setup.config.drain_timeout = if second_signal {
            Duration::from_secs(60)
        } else {
            Duration::from_millis(100)
        };
        setup.gate.slow_down(Duration::from_millis(5));
        let Served {
            address,
            trigger,
            serving,
            ..
        } = setup.serve().await;
        let request = reqwest::Client::new()
            .post(format!("http://{address}{CHAT}"))
            .json(&endless(true));
        let running = request.send().await.expect("headers");
        trigger.signal();
        if second_signal {
            tokio::time::sleep(Duration::from_millis(100)).await;
            assert!(!serving.is_finished());
            trigger.signal();
        }
        let ended = tokio::time::timeout(Duration::from_secs(10), serving).await;
        ended.expect("in time").expect("no panic").expect("served");
        let text = running.text().await.expect("the stream ends in order");
        assert!(
            text.contains("\"code\":\"shutting_down\"") && text.ends_with("data: [DONE]\n\n"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn idle_connections_do_not_hold_a_shutdown() {
    let Served {
        address,
        trigger,
        serving,
        ..
    } = Setup::default().serve().await;
    let mut idle = TcpStream::connect(address).await.expect("a connection");
    let mut kept = TcpStream::connect(address).await.expect("a connection");
    kept.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await
        .expect("sent");
    let mut begin = [0; 12];
    kept.read_exact(&mut begin).await.expect("an answer");
    trigger.signal();
    let ended = tokio::time::timeout(Duration::from_secs(5), serving).await;
    ended.expect("in time").expect("no panic").expect("served");
    let mut rest = Vec::new();
    idle.read_to_end(&mut rest).await.expect("closed");
    assert!(rest.is_empty());
}

#[tokio::test]
async fn a_client_that_stops_reading_does_not_hold_its_reply_for_ever() {
    let mut setup = Setup {
        context_length: 400_000,
        ..Setup::default()
    };
    setup.config.limits.write_timeout = Duration::from_millis(300);
    let Served {
        address,
        trigger,
        serving,
        ..
    } = setup.serve().await;
    let scores =
        json!({"stream": true, "max_tokens": 20_000, "logprobs": true, "top_logprobs": 20});
    let client = post_raw(address, &with(ask_message("#flat 90#"), scores)).await;
    client.readable().await.expect("the reply begins");
    // A drain waits for every reply; this one ends although its client neither reads nor leaves.
    trigger.signal();
    let ended = tokio::time::timeout(Duration::from_secs(15), serving).await;
    ended.expect("in time").expect("no panic").expect("served");
    drop(client);
}

/// A stream that waits beyond its limit is cut where it stands: its places are free, what was sent is whole, its
/// neighbour notices nothing.
#[tokio::test]
async fn a_stream_that_is_read_too_slowly_is_cut_off_alone() {
    let mut setup = Setup::default();
    setup.config.limits.backlog_bytes = 100_000;
    let Served { world, address, .. } = setup.serve().await;
    let neighbour = with(
        ask_message("neighbour"),
        json!({"max_tokens": 60, "logprobs": true}),
    );
    let alone = world.reply(&neighbour).await;
    let named: Vec<u32> = (0..crate::vocab::size_u32()).collect();
    let wide = json!({
        "stream": true, "max_tokens": 3_000, "logprobs": true, "allowed_token_ids": named,
        "return_token_ids": true,
    });
    let mut client = post_raw(address, &with(ask_message("#flat 90#"), wide)).await;
    client.readable().await.expect("the reply begins");
    let together = world.reply(&neighbour).await;
    assert_eq!(together["choices"], alone["choices"]);
    eventually(&world, "cut off", |stats| stats.num_cancelled == 1).await;
    let stats = world.engine.stats();
    assert_eq!((stats.num_running, stats.num_kv_blocks_used), (0, 0));

    let mut text = Vec::new();
    let mut part = vec![0; 1 << 20];
    while !text.ends_with(b"data: [DONE]\n\n") && !text.ends_with(b"0\r\n\r\n") {
        let num_bytes = client.read(&mut part).await.expect("more of it");
        assert_ne!(num_bytes, 0, "the stream ends in order");
        text.extend_from_slice(&part[..num_bytes]);
    }
    let text = String::from_utf8_lossy(&text);
    let (sent, end) = text
        .rsplit_once("data: {\"error\"")
        .expect("an error event");
    assert!(end.contains("\"code\":\"read_too_slowly\""), "{end}");
    // Every chunk that went out has its own entries: as many as tokens, none cut.
    let num_chunks = sent.matches("\"delta\":{\"content\"").count();
    let num_entries = sent.matches("\"allowed_logprob\"").count();
    assert!(
        num_chunks > 10 && num_entries >= num_chunks,
        "{num_chunks} {num_entries}"
    );
    assert_eq!(
        sent.matches("\"finish_reason\":null").count(),
        sent.matches("\"finish_reason\"").count()
    );
    assert_eq!(
        world.reply(&ask("next")).await["choices"][0]["message"]["content"],
        "next"
    );
}

/// A request's time is over: an error in place of the reply or at the end of the stream, and free places.
#[tokio::test]
async fn a_request_that_takes_too_long_is_ended() {
    let mut setup = Setup::default();
    setup.config.request_timeout = Some(Duration::from_millis(400));
    setup.gate.slow_down(Duration::from_millis(5));
    let world = setup.build();
    world.reply(&ask("short")).await;
    let answer = world.post(&endless(false)).await;
    let error = answer.error(StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(error["code"], "deadline_exceeded");
    let answer = world
        .post(&endless(true))
        .await
        .expect_status(StatusCode::OK);
    let events = answer.data();
    let (last, sent) = events.split_last().expect("events");
    assert_eq!(last["error"]["code"], "deadline_exceeded", "{last}");
    assert!(!sent.is_empty(), "what there was went out before");
    eventually(&world, "both ended", |stats| {
        (
            stats.num_cancelled,
            stats.num_running,
            stats.num_kv_blocks_used,
        ) == (4, 0, 0)
    })
    .await;
    world.gate.close();
    let question = json!({"input": "state", "questions": [crate::decisions::openai_teams()]});
    let decision = world.post_to("/v1/decisions", &question).await;
    let error = decision.error(StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(error["code"], "deadline_exceeded");
    world.gate.open();
    world.reply(&ask("again")).await;
}

#[tokio::test]
async fn silence_is_kept_open_by_comments() {
    let mut setup = Setup::default();
    setup.config.limits.keep_alive = Duration::from_millis(20);
    setup.gate.close();
    let world = setup.build();
    let waiting = world.clone();
    let reply = tokio::spawn(async move {
        waiting
            .post(&with(ask("late"), json!({"stream": true})))
            .await
    });
    held(&world).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    world.gate.open();
    let answer = reply.await.expect("answered");
    assert!(String::from_utf8_lossy(&answer.body).contains(": keep-alive\n\n"));
    assert_eq!(
        crate::stream::collect(&answer.data())["choices"][0]["message"]["content"],
        "late"
    );
}
