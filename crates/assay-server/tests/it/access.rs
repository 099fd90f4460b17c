//! Keys, and web pages of other sites.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::Value;

use crate::world::{Answer, CHAT, Setup, World, ask};

fn keyed() -> World {
    let mut setup = Setup::default();
    setup.config.api_keys = vec!["first-key".to_owned(), "second".to_owned()];
    setup.build()
}

async fn send(world: &World, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = match path {
        CHAT => Request::post(CHAT).header("content-type", "application/json"),
        path => Request::get(path),
    };
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = match path {
        CHAT => Body::from(ask("x").to_string()),
        _ => Body::empty(),
    };
    world.send(request.body(body).expect("a request")).await
}

#[tokio::test]
async fn keys_open_every_route_but_the_probes() {
    let world = keyed();
    for path in ["/health", "/ready"] {
        send(&world, path, &[]).await.expect_status(StatusCode::OK);
    }
    for path in [CHAT, "/v1/models", "/metrics", "/nowhere", "/health/"] {
        for wrong in [
            &[][..],
            &[("authorization", "Bearer wrong")],
            &[("authorization", "Bearer ")],
            &[("authorization", "Bearer")],
            &[("authorization", "first-key")],
            &[("authorization", "Basic first-key")],
            &[("authorization", "Bearer first-key2")],
            &[("authorization", "Bearer first-ke")],
            &[("authorization", "Bearer FIRST-KEY")],
        ] {
            let answer = send(&world, path, wrong).await;
            let error = answer.error(StatusCode::UNAUTHORIZED);
            assert_eq!(error["code"], "invalid_api_key");
            assert_eq!(error["param"], Value::Null);
            assert!(answer.header("www-authenticate").is_some());
        }
    }
    for right in ["Bearer first-key", "Bearer second", "bearer second"] {
        send(&world, CHAT, &[("authorization", right)])
            .await
            .expect_status(StatusCode::OK);
        let nowhere = send(&world, "/nowhere", &[("authorization", right)]).await;
        nowhere.error(StatusCode::NOT_FOUND);
    }
}

/// Every route that holds data: none of them answers without a key, whatever is sent.
#[tokio::test]
async fn no_route_answers_without_a_key() {
    const POST: [&str; 13] = [
        CHAT,
        "/v1/completions",
        "/v1/responses",
        "/v1/messages",
        "/v1/messages/count_tokens",
        "/v1/score",
        "/v1/decisions",
        "/v1/decide",
        "/v1/systemone",
        "/v1/replay",
        "/tokenize",
        "/detokenize",
        "/apply-template",
    ];
    const GET: [&str; 5] = [
        "/v1/about",
        "/v1/models",
        "/v1/models/scripted",
        "/metrics",
        "/tokenizer_info",
    ];
    let world = keyed();
    let open = World::new();
    for (method, paths) in [("POST", &POST[..]), ("GET", &GET[..])] {
        for path in paths {
            let request = |key: Option<&str>| {
                let request = Request::builder().method(method).uri(*path);
                let request = match key {
                    Some(key) => request.header("authorization", format!("Bearer {key}")),
                    None => request,
                };
                let request = request.header("content-type", "application/json");
                request.body(Body::from("{}")).expect("a request")
            };
            for wrong in [None, Some("wrong"), Some("first-key,second")] {
                let answer = world.send(request(wrong)).await;
                assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{path}");
            }
            let right = world.send(request(Some("second"))).await.status;
            let keyless = open.send(request(None)).await.status;
            assert_eq!(right, keyless, "{path}");
            assert_ne!(right, StatusCode::NOT_FOUND, "{path} is a route");
        }
    }
    assert_eq!(world.engine.stats().num_steps, 0);
}

#[tokio::test]
async fn pages_of_other_sites_are_kept_out() {
    let world = World::new();
    let local = [
        &[][..],
        &[("host", "127.0.0.1:8080")],
        &[
            ("host", "localhost:8080"),
            ("origin", "http://localhost:3000"),
        ],
        &[("host", "[::1]:8080"), ("origin", "http://127.0.0.1:8080")],
    ];
    for headers in local {
        send(&world, CHAT, headers)
            .await
            .expect_status(StatusCode::OK);
    }
    let foreign = [
        &[("host", "evil.example:8080")][..],
        &[("host", "127.0.0.1"), ("host", "evil.example")],
        &[
            ("host", "127.0.0.1:8080"),
            ("origin", "https://evil.example"),
        ],
        &[("host", "127.0.0.1:8080"), ("origin", "null")],
        &[
            ("host", "127.0.0.1:8080"),
            ("origin", "http://localhost.evil.example"),
        ],
        &[("host", "")],
    ];
    for headers in foreign {
        for path in [CHAT, "/v1/models", "/health"] {
            let error = send(&world, path, headers)
                .await
                .error(StatusCode::FORBIDDEN);
            assert_eq!(error["code"], "foreign_site");
        }
    }
    // With a key, or beyond loopback, names are not ours to judge.
    let headers = [
        ("host", "my.name.example"),
        ("authorization", "Bearer second"),
    ];
    send(&keyed(), CHAT, &headers)
        .await
        .expect_status(StatusCode::OK);
    let mut beyond = Setup::default();
    beyond.config.loopback = false;
    send(&beyond.build(), CHAT, &headers)
        .await
        .expect_status(StatusCode::OK);
}

#[tokio::test]
async fn cors_is_off_unless_an_origin_is_named() {
    let page = [("origin", "https://page.example"), ("host", "localhost")];
    let mut setup = Setup::default();
    setup.config.cors_origins = vec!["https://page.example".to_owned()];
    let world = setup.build();
    let answer = send(&world, "/v1/models", &page)
        .await
        .expect_status(StatusCode::OK);
    assert_eq!(
        answer.header("access-control-allow-origin"),
        Some("https://page.example")
    );
    let preflight = Request::builder().method("OPTIONS").uri(CHAT);
    let preflight = preflight
        .header("origin", "https://page.example")
        .header("host", "localhost")
        .header("access-control-request-method", "POST")
        .header(
            "access-control-request-headers",
            "authorization,content-type",
        );
    let answer = world
        .send(preflight.body(Body::empty()).expect("a request"))
        .await;
    let answer = answer.expect_status(StatusCode::OK);
    assert_eq!(
        answer.header("access-control-allow-headers"),
        Some("authorization,content-type")
    );
    let closed = World::new();
    let local = [("origin", "http://localhost:3000"), ("host", "localhost")];
    let answer = send(&closed, "/v1/models", &local)
        .await
        .expect_status(StatusCode::OK);
    assert_eq!(answer.header("access-control-allow-origin"), None);
}
