//! `/health`, `/ready`, `/metrics`, unknown routes, wrong methods, request names.

use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use serde_json::json;

use crate::world::{CHAT, Served, Setup, World, ask, with};

#[tokio::test]
async fn fault_126_health_tells_of_a_dead_engine() {
    let world = World::new();
    for path in ["/health", "/ready"] {
        world.get(path).await.expect_status(StatusCode::OK);
    }
    world.engine.stop();
    assert!(
        world
            .engine
            .wait_stopped(std::time::Duration::from_secs(10))
    );
    for path in ["/health", "/ready"] {
        let error = world.get(path).await.error(StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(error["code"], "engine_stopped");
    }
    world
        .post(&ask("x"))
        .await
        .error(StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn metrics_count_what_happened() {
    let world = World::new();
    let reply = world.reply(&ask("four")).await;
    world
        .reply(&with(ask("four"), json!({"max_tokens": 2})))
        .await;
    let answer = world.get("/metrics").await.expect_status(StatusCode::OK);
    assert_eq!(
        answer.header("content-type"),
        Some("text/plain; version=0.0.4; charset=utf-8")
    );
    let text = String::from_utf8(answer.body.to_vec()).expect("UTF-8");
    let prompt_tokens = 2 * reply["usage"]["prompt_tokens"].as_u64().expect("a count");
    for line in [
        "vllm:num_requests_running{model_name=\"scripted\"} 0".to_owned(),
        "vllm:num_requests_waiting{model_name=\"scripted\"} 0".to_owned(),
        format!("vllm:prompt_tokens_total{{model_name=\"scripted\"}} {prompt_tokens}"),
        "vllm:generation_tokens_total{model_name=\"scripted\"} 7".to_owned(),
        "assay_request_overhead_seconds_count{model_name=\"scripted\"} 2".to_owned(),
        "vllm:request_queue_time_seconds_count{model_name=\"scripted\"} 2".to_owned(),
        "vllm:time_to_first_token_seconds_count{model_name=\"scripted\"} 2".to_owned(),
        "vllm:e2e_request_latency_seconds_count{model_name=\"scripted\"} 2".to_owned(),
        "assay_numerical_errors_total{model_name=\"scripted\"} 0".to_owned(),
        "assay_requests_cancelled_total{model_name=\"scripted\"} 0".to_owned(),
        "assay_decisions_total{model_name=\"scripted\"} 0".to_owned(),
        "assay_decision_trie_edges_total{model_name=\"scripted\"} 0".to_owned(),
    ] {
        assert!(text.contains(&line), "{line}\n{text}");
    }
    for reason in ["stop", "length"] {
        let line = text.lines().find(|line| {
            line.starts_with("vllm:request_success_total")
                && line.contains(&format!("finished_reason=\"{reason}\""))
        });
        assert!(
            line.is_some_and(|line| line.ends_with(" 1")),
            "{reason}\n{text}"
        );
    }
}

#[tokio::test]
async fn unknown_routes_and_wrong_methods_are_json() {
    let world = World::new();
    for path in ["/v1", "/v1/chat", "/v1/chat/completions/", "/v1/nothing"] {
        world.get(path).await.error(StatusCode::NOT_FOUND);
    }
    for (method, path, allow) in [
        (Method::GET, CHAT, "POST"),
        (Method::DELETE, CHAT, "POST"),
        (Method::POST, "/v1/models", "GET,HEAD"),
        (Method::POST, "/health", "GET,HEAD"),
    ] {
        let answer = world.method(method, path).await;
        answer.error(StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(answer.header("allow"), Some(allow), "{path}");
    }
}

#[tokio::test]
async fn every_answer_carries_a_request_id() {
    let world = World::new();
    let named = |id: &'static str| {
        let request = Request::get("/health").header("x-request-id", id);
        request.body(Body::empty()).expect("a request")
    };
    let answer = world.send(named("abc-123")).await;
    assert_eq!(answer.header("x-request-id"), Some("abc-123"));
    let (first, second) = (
        world.get("/nowhere").await,
        world.send(named("has blanks in it")).await,
    );
    for answer in [&first, &second] {
        assert!(
            answer
                .header("x-request-id")
                .is_some_and(|id| id.starts_with("req-"))
        );
    }
}

#[tokio::test]
async fn the_served_address_answers() {
    let Served { address, .. } = Setup::default().serve().await;
    let answer = reqwest::get(format!("http://{address}/health"))
        .await
        .expect("an answer");
    assert_eq!(answer.status(), StatusCode::OK);
}
