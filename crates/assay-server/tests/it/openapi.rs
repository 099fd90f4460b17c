//! The OpenAPI document beside the server: the routes, the examples, and every reply and every accepted body of these
//! tests against its schemas.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock, Mutex};

use axum::http::{Method, StatusCode};
use jsonschema::Validator;
use serde_json::{Value, json};

use crate::world::{Answer, Setup, World};

const FILE: &str = include_str!("../../../../docs/openapi.json");
const ROUTER: &str = include_str!("../../src/router.rs");

static DOCUMENT: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(FILE).expect("the document is JSON"));

/// Validators by the schemas that they are of.
static VALIDATORS: LazyLock<Mutex<BTreeMap<String, Arc<Validator>>>> =
    LazyLock::new(Mutex::default);

/// Checks `value` against `schema`, which may refer to the document's.
#[track_caller]
fn check(schema: &Value, value: &Value, what: &str) {
    let key = schema.to_string();
    let known = VALIDATORS
        .lock()
        .expect("no test panics here")
        .get(&key)
        .cloned();
    let validator = known.unwrap_or_else(|| {
        let mut whole = schema.clone();
        whole["components"] = DOCUMENT["components"].clone();
        let made = jsonschema::validator_for(&whole).expect("a schema");
        let made = Arc::new(made);
        let mut validators = VALIDATORS.lock().expect("no test panics here");
        Arc::clone(validators.entry(key).or_insert(made))
    });
    let errors: Vec<String> = validator
        .iter_errors(value)
        .map(|error| format!("{error} at {}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{what}: {errors:#?}\n{value}\n{schema}");
}

/// The operation that answers `path`, if the document knows it.
fn operation(method: &str, path: &str) -> Option<&'static Value> {
    let template = if path.starts_with("/v1/models/") {
        "/v1/models/{id}"
    } else {
        path
    };
    DOCUMENT["paths"].get(template)?.get(method.to_lowercase())
}

/// `value`, or what it refers to.
fn resolved(value: &'static Value) -> &'static Value {
    match value.get("$ref").and_then(Value::as_str) {
        Some(reference) => DOCUMENT
            .pointer(reference.trim_start_matches('#'))
            .expect("references lead somewhere"),
        None => value,
    }
}

/// Checks a reply: its status is documented, its body has the schema of it, its headers are those that it should have.
#[track_caller]
pub(crate) fn check_reply(method: &Method, path: &str, answer: &Answer) {
    let Some(operation) = operation(method.as_str(), path) else {
        return;
    };
    let status = answer.status.as_u16().to_string();
    let what = format!("{method} {path} {status}");
    let response = operation["responses"].get(&status);
    let response = resolved(response.unwrap_or_else(|| panic!("{what} is not in the document")));
    for name in response["headers"].as_object().expect("headers").keys() {
        let is_optional = name == "x-assay-ignored";
        assert!(
            is_optional || answer.header(name).is_some(),
            "{what}: no {name}"
        );
    }
    let content_type = answer.header("content-type").unwrap_or_default();
    let media_type = content_type.split(';').next().unwrap_or_default();
    let contents = response["content"].as_object().expect("contents");
    let content = contents
        .iter()
        .find(|(known, _)| known.starts_with(media_type));
    let (_, content) = content.unwrap_or_else(|| panic!("{what}: {media_type}"));
    match media_type {
        "application/json" => check(&content["schema"], &answer.json(), &what),
        "text/event-stream" => check_events(operation, &content["schema"], answer, &what),
        _ => {}
    }
}

/// Checks every event of a stream; a failure after its beginning has the schema of the route's errors.
fn check_events(operation: &'static Value, event: &Value, answer: &Answer, what: &str) {
    let error = resolved(&operation["responses"]["500"]);
    let error = &error["content"]["application/json"]["schema"];
    let text = std::str::from_utf8(&answer.body).expect("UTF-8");
    for data in text.lines().filter_map(|line| line.strip_prefix("data: ")) {
        if data == "[DONE]" {
            continue;
        }
        let data: Value = serde_json::from_str(data).expect("JSON");
        let is_error = data.get("error").is_some_and(Value::is_object);
        check(if is_error { error } else { event }, &data, what);
    }
}

/// Checks that a body which was taken is one that the document allows.
#[track_caller]
pub(crate) fn check_accepted(path: &str, body: &Value, status: StatusCode) {
    let Some(operation) = operation("post", path).filter(|_| status.is_success()) else {
        return;
    };
    let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    check(schema, body, &format!("an accepted body of {path}"));
}

#[tokio::test]
async fn the_document_is_what_the_code_says() {
    let made = assay_openapi::document().unwrap_or_else(|faults| panic!("{faults:#?}"));
    assert!(
        made.text() == FILE,
        "run `cargo xtask openapi`, and look at what changed in docs/openapi.json"
    );
    let answer = World::new().get("/openapi.json").await;
    assert_eq!(answer.expect_status(StatusCode::OK).json(), *DOCUMENT);
}

#[tokio::test]
async fn every_route_is_in_the_document_and_no_other() {
    let lines = ROUTER.split(".route(").skip(1);
    let routes: BTreeSet<(String, &str)> = lines
        .map(|route| {
            let path = route.split('"').nth(1).expect("a path");
            let after = route.split_once(',').expect("a handler").1.trim_start();
            let method = after.split('(').next().expect("a method");
            (path.replace("{*id}", "{id}"), method)
        })
        .collect();
    let operations = assay_openapi::operations();
    let documented = operations
        .iter()
        .map(|operation| (operation.path.to_owned(), operation.method));
    // The pages' parts are their own business.
    let is_part = |path: &str| path.starts_with("/docs/") || path.starts_with("/console/");
    let parts = routes.iter().filter(|(path, _)| is_part(path));
    let parts: Vec<_> = parts.cloned().collect();
    let routes: BTreeSet<_> = routes
        .into_iter()
        .filter(|route| !parts.contains(route))
        .collect();
    assert_eq!(routes, documented.collect());
}

#[tokio::test]
async fn examples_are_answered_as_documented() {
    let world = World::new();
    let requests = assay_openapi::requests();
    for operation in assay_openapi::operations() {
        let Some(component) = operation.request else {
            let path = operation.path.replace("{id}", "alias/of-it");
            world.get(&path).await.expect_status(StatusCode::OK);
            continue;
        };
        let request = requests
            .iter()
            .find(|request| request.component == component);
        let samples = &request.expect("every request has samples").samples;
        let examples = samples.iter().filter(|sample| sample.summary.is_some());
        let mut num_examples = 0;
        for example in examples {
            let answer = world.post_to(operation.path, &example.body).await;
            assert_eq!(
                answer.status,
                StatusCode::OK,
                "{}: {}: {}",
                operation.path,
                example.body,
                String::from_utf8_lossy(&answer.body)
            );
            assert_eq!(answer.header("x-assay-ignored"), None);
            num_examples += 1;
        }
        assert!(num_examples > 0, "{} has no example", operation.path);
        world.post_to(operation.path, &json!({"model": 5})).await;
        world.post_to(operation.path, &json!([])).await;
    }
}

#[tokio::test]
async fn what_tells_of_the_server_and_holds_no_data_is_open() {
    let mut setup = Setup::default();
    setup.config.api_keys = vec!["secret".to_owned()];
    let world = setup.build();
    for operation in assay_openapi::operations() {
        let documented = &DOCUMENT["paths"][operation.path][operation.method];
        let is_open = documented["security"] == json!([]);
        let method = operation.method.to_uppercase().parse().expect("a method");
        let answer = world
            .method(method, &operation.path.replace("{id}", "x"))
            .await;
        let is_refused = answer.status == StatusCode::UNAUTHORIZED;
        assert_eq!(is_open, !is_refused, "{}", operation.path);
    }
}

/// The page asks for nothing that is not served here, and its policy lets nothing else in.
#[tokio::test]
async fn the_page_is_whole_without_a_network() {
    let world = World::new();
    let page = world.get("/docs").await.expect_status(StatusCode::OK);
    let html = std::str::from_utf8(&page.body).expect("UTF-8").to_owned();
    let links: Vec<&str> = html
        .split(['"', ' '])
        .filter(|text| text.starts_with('/') && text.len() > 1 && !text.starts_with("/>"))
        .collect();
    for part in ["/docs/page.css", "/docs/page.js", "/openapi.json"] {
        assert!(links.contains(&part), "{links:?}");
    }
    for link in links {
        let link = link.split('>').next().expect("a path");
        world.get(link).await.expect_status(StatusCode::OK);
    }
    for path in ["/docs", "/docs/page.css", "/docs/page.js"] {
        let answer = world.get(path).await.expect_status(StatusCode::OK);
        let text = std::str::from_utf8(&answer.body).expect("UTF-8");
        assert!(
            !text.contains("http://") && !text.contains("https://"),
            "{path}"
        );
        let policy = answer.header("content-security-policy").expect("a policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"));
        assert!(!policy.contains("unsafe") && !policy.contains("http"));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    }
}
