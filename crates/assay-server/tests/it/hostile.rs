//! Bodies that no honest client sends, in process and over a socket. After each of them the server answers.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::world::{CHAT, Served, Setup, World, ask, with};

async fn check_lives(world: &World) {
    let reply = world.reply(&ask("alive")).await;
    assert_eq!(reply["choices"][0]["message"]["content"], "alive");
}

#[tokio::test]
async fn fault_50_bad_json_and_bad_utf8_are_400() {
    let world = World::new();
    let good = ask("x").to_string();
    let mut bodies: Vec<Vec<u8>> = [
        "",
        " ",
        "null",
        "5",
        "\"x\"",
        "[]",
        "{",
        "}",
        "{}",
        "{\"messages\"",
        "nul",
        "{'a': 1}",
        "{\"a\": 1,}",
        "{\"a\": 01}",
        "{\"a\": 1e999}",
        "{\"a\": NaN}",
        "{\"a\": Infinity}",
        "{\"a\": -}",
        "{\"\\ud800\": 1}",
        "{\"n\": 1, \"n\": 2, \"messages\": []}",
    ]
    .iter()
    .map(|body| body.as_bytes().to_vec())
    .collect();
    bodies.extend([
        b"\xff\xfe{}".to_vec(),
        b"\xef\xbb\xbf{}".to_vec(),
        b"{\"messages\": \"\xc4\xe3\xba\xc3\"}".to_vec(),
        [good.as_bytes(), b"\xc3"].concat(),
        [good.as_bytes(), b"{}"].concat(),
        [good.as_bytes(), b"\0"].concat(),
    ]);
    bodies.extend(
        (1..good.len())
            .step_by(7)
            .map(|end| good.as_bytes()[..end].to_vec()),
    );
    for body in bodies {
        let shown = String::from_utf8_lossy(&body).into_owned();
        let answer = world.post_bytes(body).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{shown}");
        let error = answer.error(StatusCode::BAD_REQUEST);
        assert_eq!(error["type"], "invalid_request_error", "{shown}");
    }
    let twice = world
        .post_bytes("{\"n\": 1, \"n\": 2}")
        .await
        .error(StatusCode::BAD_REQUEST);
    assert_eq!(twice["param"], "n");
    check_lives(&world).await;
}

#[tokio::test]
async fn fault_146_fault_149_fault_150_depth_is_cut() {
    let world = World::new();
    for depth in [129, 10_000, 1_000_000] {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        let objects = format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        for body in [
            open.clone(),
            objects.clone(),
            format!("{{\"messages\": {open}{close}}}"),
            format!("{{\"tools\": [{{\"function\": {{\"parameters\": {objects}}}}}]}}"),
            format!("{{\"unknown\": {open}{close}}}"),
        ] {
            let error = world.post_bytes(body).await.error(StatusCode::BAD_REQUEST);
            assert!(
                error["message"]
                    .as_str()
                    .is_some_and(|text| text.contains("128")),
                "{error}"
            );
        }
    }
    let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    let deep: Value = serde_json::from_str(&deep).expect("within limits");
    world.reply(&with(ask("x"), json!({"unknown": deep}))).await;
    check_lives(&world).await;
}

#[tokio::test]
async fn too_many_of_anything_is_400() {
    let world = World::new();
    let message = json!({"role": "user", "content": "x"});
    let messages = json!({"messages": vec![message.clone(); 4_097]});
    world
        .check_refused(&with(ask("x"), messages), "messages")
        .await;
    let zeros = format!("{{\"messages\": [{}0]}}", "0,".repeat(2_000_000));
    world.post_bytes(zeros).await.error(StatusCode::BAD_REQUEST);
    let long_key = json!({"logit_bias": {"9".repeat(1 << 20): 1}});
    let answer = world.post(&with(ask("x"), long_key)).await;
    answer.error(StatusCode::BAD_REQUEST);
    assert!(
        answer.body.len() < 1_000,
        "client text is not repeated at length"
    );
    check_lives(&world).await;
}

#[tokio::test]
async fn a_long_prompt_is_refused_quickly() {
    let world = World::new();
    let body = crate::world::ask_message(&"x ".repeat(15 << 20));
    let started = std::time::Instant::now();
    let error = world.post(&body).await.error(StatusCode::BAD_REQUEST);
    assert_eq!(error["code"], "context_length_exceeded");
    assert!(started.elapsed().as_secs() < 10, "{:?}", started.elapsed());
    check_lives(&world).await;
}

#[tokio::test]
async fn other_content_types_and_encodings_are_415() {
    let world = World::new();
    let send = |headers: &'static [(&'static str, &'static str)]| {
        let mut request = Request::post(CHAT);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request
            .body(Body::from(ask("x").to_string()))
            .expect("a request")
    };
    for headers in [
        &[][..],
        &[("content-type", "text/plain")],
        &[("content-type", "application/x-www-form-urlencoded")],
        &[("content-type", "application/jsonp")],
        &[
            ("content-type", "application/json"),
            ("content-encoding", "gzip"),
        ],
        &[
            ("content-type", "application/json"),
            ("content-encoding", "zstd"),
        ],
    ] {
        world
            .send(send(headers))
            .await
            .error(StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }
    for headers in [
        &[("content-type", "application/json; charset=utf-8")][..],
        &[
            ("content-type", "Application/JSON"),
            ("content-encoding", "identity"),
        ],
    ] {
        world
            .send(send(headers))
            .await
            .expect_status(StatusCode::OK);
    }
}

#[tokio::test]
async fn a_body_of_40_mib_is_413_with_and_without_a_length() {
    let Served { world, address, .. } = Setup::default().serve().await;
    let url = format!("http://{address}{CHAT}");
    let client = reqwest::Client::new();
    let big = vec![b' '; 40 << 20];
    let pieces =
        futures_util::stream::iter((0..40).map(|_| Ok::<_, std::io::Error>(vec![b' '; 1 << 20])));
    for body in [reqwest::Body::from(big), reqwest::Body::wrap_stream(pieces)] {
        let request = client
            .post(&url)
            .header("content-type", "application/json")
            .body(body);
        let response = request
            .send()
            .await
            .expect("an answer, not a broken connection");
        assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
        let error: Value = response.json().await.expect("JSON");
        assert_eq!(error["error"]["type"], "invalid_request_error");
    }
    check_lives(&world).await;
}

#[tokio::test]
async fn many_large_bodies_do_not_add_up() {
    let mut setup = Setup::default();
    setup.config.limits.all_bodies_bytes = 1 << 20;
    let Served { world, address, .. } = setup.serve().await;
    let half = format!(
        "POST {CHAT} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\n\r\n{}",
        " ".repeat(900_000)
    );
    let mut first = TcpStream::connect(address).await.expect("a connection");
    first.write_all(half.as_bytes()).await.expect("sent");
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    let large = with(ask("x"), json!({"user": "x".repeat(400_000)}));
    let answer = world.post(&large).await;
    answer.error(StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(answer.header("retry-after"), Some("1"));
    check_lives(&world).await;
    drop(first);
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    world.post(&large).await.expect_status(StatusCode::OK);
}

/// Sends raw bytes and reads what comes until the server closes.
async fn raw(address: std::net::SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    // The server may close before it took everything.
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let reading = stream.read_to_end(&mut answer);
    let _ = tokio::time::timeout(std::time::Duration::from_secs(10), reading).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn cve_2025_48956_headers_have_a_limit() {
    let Served { world, address, .. } = Setup::default().serve().await;
    let head = |bytes: usize| {
        format!(
            "GET /health HTTP/1.1\r\nhost: localhost\r\nx: {}\r\nconnection: close\r\n\r\n",
            "x".repeat(bytes)
        )
    };
    let fits = raw(address, head(60 << 10).as_bytes()).await;
    assert!(fits.starts_with("HTTP/1.1 200"), "{fits}");
    for bytes in [70 << 10, 4 << 20] {
        let answer = raw(address, head(bytes).as_bytes()).await;
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 431"),
            "{answer}"
        );
    }
    check_lives(&world).await;
}

#[tokio::test]
async fn broken_requests_do_not_hurt() {
    let mut setup = Setup::default();
    setup.config.limits.header_timeout = std::time::Duration::from_millis(300);
    setup.config.limits.body_timeout = std::time::Duration::from_millis(300);
    let Served { world, address, .. } = setup.serve().await;
    let json = "host: localhost\r\ncontent-type: application/json\r\n";
    for (bytes, status) in [
        (b"\0\0\0\0".to_vec(), "400"),
        (b"GET / HTTP/1.1\r\nhost: localhost\r\n".to_vec(), ""),
        (
            format!("POST {CHAT} HTTP/1.1\r\n{json}content-length: 10\r\n\r\n{{").into_bytes(),
            "408",
        ),
        (
            format!("POST {CHAT} HTTP/1.1\r\n{json}content-length: -5\r\n\r\n").into_bytes(),
            "400",
        ),
        (
            format!("POST {CHAT} HTTP/1.1\r\n{json}transfer-encoding: chunked\r\n\r\nZZ\r\n")
                .into_bytes(),
            "400",
        ),
        (
            format!("POST {CHAT} HTTP/1.1\r\n{json}content-length: 99999999999\r\n\r\n")
                .into_bytes(),
            "413",
        ),
    ] {
        let answer = raw(address, &bytes).await;
        let shown = String::from_utf8_lossy(&bytes).into_owned();
        assert!(
            answer.is_empty() || answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{shown:?}: {answer}"
        );
    }
    check_lives(&world).await;
}
