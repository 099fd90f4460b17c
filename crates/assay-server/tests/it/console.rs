//! The console is whole without a network, and open: its page holds no data.

use axum::http::StatusCode;

use crate::world::{Setup, World};

const PARTS: [&str; 5] = [
    "/console/console.css",
    "/console/console.js",
    "/console/sans.woff2",
    "/console/mono.woff2",
    "/console/fonts.txt",
];

#[tokio::test]
async fn the_console_is_whole_without_a_network() {
    let mut setup = Setup::default();
    setup.config.api_keys = vec!["secret".to_owned()];
    let world = setup.build();
    let page = world.get("/").await.expect_status(StatusCode::OK);
    let html = std::str::from_utf8(&page.body).expect("UTF-8").to_owned();
    for part in &PARTS[..2] {
        assert!(html.contains(part), "{part}");
    }
    assert!(!html.contains("://"), "{html}");
    assert!(
        !html.contains("<script>"),
        "the policy runs no script of the page"
    );
    for path in PARTS.into_iter().chain(["/"]) {
        let answer = world.get(path).await.expect_status(StatusCode::OK);
        assert!(!answer.body.is_empty(), "{path}");
        let policy = answer.header("content-security-policy").expect("a policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"));
        assert!(!policy.contains("unsafe") && !policy.contains("http"));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    }
}

#[tokio::test]
async fn parts_that_are_not_there_are_not_found() {
    let world = World::new();
    for path in [
        "/console/",
        "/console/nothing",
        "/console/..%2fdocs",
        "/console/%ff",
    ] {
        world.get(path).await.expect_status(StatusCode::NOT_FOUND);
    }
}
