//! What decisions refuse, where, and in which shape; what bodies they take.

use std::io::Write as _;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::{Value, json};

use crate::decisions::{DECISIONS, SYSTEM_ONE, decide};
use crate::world::{MODEL, Setup, World, with};

fn noul() -> Value {
    json!({"type": "noul", "instructions": "So?"})
}

fn body() -> Value {
    json!({"model": MODEL, "state": "x", "questions": {"q": noul()}})
}

fn many(count: usize) -> Value {
    let options = (0..count).map(|index| (format!("o{index}"), Value::Null));
    Value::Object(options.collect())
}

#[tokio::test]
async fn d10_system_one_names_the_place_of_every_fault() {
    let world = World::new();
    let question = |question: Value| with(body(), json!({"questions": {"a.b": question}}));
    let at = |rest: Value| {
        let mut loc = vec![json!("body"), json!("questions"), json!("a.b")];
        loc.extend(rest.as_array().expect("a list").iter().cloned());
        Value::Array(loc)
    };
    let long = "many words of a long option ".repeat(6);
    let cases = [
        (
            with(body(), json!({"state": null})),
            json!(["body", "state"]),
        ),
        (with(body(), json!({"state": 5})), json!(["body", "state"])),
        (
            with(body(), json!({"questions": {}})),
            json!(["body", "questions"]),
        ),
        (
            with(body(), json!({"questions": []})),
            json!(["body", "questions"]),
        ),
        (
            with(body(), json!({"questions": {"": noul()}})),
            json!(["body", "questions"]),
        ),
        (
            with(body(), json!({"readout": "word"})),
            json!(["body", "readout"]),
        ),
        (
            with(body(), json!({"debias": {"rotations": 0}})),
            json!(["body", "debias", "rotations"]),
        ),
        (
            with(body(), json!({"debias": {"rotation": 2}})),
            json!(["body", "debias", "rotation"]),
        ),
        (
            with(body(), json!({"prior": "none"})),
            json!(["body", "prior"]),
        ),
        (
            with(body(), json!({"min_label_mass": 1.5})),
            json!(["body", "min_label_mass"]),
        ),
        (question(json!("So?")), at(json!([]))),
        (
            question(json!({"instructions": "So?"})),
            at(json!(["type"])),
        ),
        (question(json!({"type": "boolean"})), at(json!(["type"]))),
        (
            question(json!({"type": "noul"})),
            at(json!(["instructions"])),
        ),
        (
            question(json!({"type": "noul", "instructions": 5})),
            at(json!(["instructions"])),
        ),
        (
            question(with(noul(), json!({"levels": []}))),
            at(json!(["levels"])),
        ),
        (
            question(with(noul(), json!({"criteria": {"yes": "x"}}))),
            at(json!(["criteria", "yes"])),
        ),
        (
            question(json!({"type": "choice", "criteria": {}})),
            at(json!(["criteria"])),
        ),
        (
            question(json!({"type": "choice", "criteria": many(1)})),
            at(json!(["criteria"])),
        ),
        (
            question(json!({"type": "choice", "criteria": many(256)})),
            at(json!(["criteria"])),
        ),
        (
            question(json!({"type": "choice", "criteria": {"a": 1, "b": null}})),
            at(json!(["criteria", "a"])),
        ),
        (
            question(json!({"type": "choice", "criteria": {"": null, "b": null}})),
            at(json!(["criteria", ""])),
        ),
        (
            question(json!({"type": "choice", "criteria": {long.clone(): null, "b": null}})),
            at(json!(["criteria", long])),
        ),
        (
            question(json!({"type": "score", "criteria": many(3)})),
            at(json!(["criteria"])),
        ),
        (
            question(json!({"type": "score", "criteria": ["x"]})),
            at(json!(["criteria"])),
        ),
        (
            question(json!({"type": "score", "criteria": ["x", null]})),
            at(json!(["criteria", 1])),
        ),
    ];
    for (body, loc) in cases {
        let answer = world.post_to(SYSTEM_ONE, &body).await;
        let errors = answer
            .expect_status(StatusCode::UNPROCESSABLE_ENTITY)
            .json();
        let detail = &errors["detail"][0];
        // An empty name ends a way.
        let mut expected = loc.clone();
        if let Some(list) = expected.as_array_mut() {
            list.retain(|step| step != "");
        }
        let mut found = detail["loc"].clone();
        if let Some(list) = found.as_array_mut() {
            list.retain(|step| step != "");
        }
        assert_eq!(found, expected, "{body}: {errors}");
        assert!(
            detail["msg"].is_string() && detail["type"].is_string(),
            "{errors}"
        );
    }
    let not_json = Request::post(SYSTEM_ONE).header("content-type", "application/json");
    let answer = world
        .send(not_json.body(Body::from("{\"state\":")).expect("a request"))
        .await;
    let errors = answer
        .expect_status(StatusCode::UNPROCESSABLE_ENTITY)
        .json();
    assert_eq!(errors["detail"][0]["type"], "json_invalid");
    assert_eq!(world.engine.stats().num_steps, 0, "no work was done");
}

#[tokio::test]
async fn other_errors_of_system_one_have_its_own_shape() {
    let mut setup = Setup::default();
    setup.config.api_keys = vec!["right".to_owned()];
    let world = setup.build();
    let send = |key: Option<&'static str>, body: Value| {
        let mut request = Request::post(SYSTEM_ONE).header("content-type", "application/json");
        if let Some(key) = key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let world = world.clone();
        async move {
            world
                .send(
                    request
                        .body(Body::from(body.to_string()))
                        .expect("a request"),
                )
                .await
        }
    };
    let image = json!({"a": {"type": "image", "format": "png", "data_base64": ""}});
    let cases = [
        (
            None,
            body(),
            StatusCode::UNAUTHORIZED,
            "authentication_error",
        ),
        (
            Some("wrong"),
            body(),
            StatusCode::UNAUTHORIZED,
            "authentication_error",
        ),
        (
            Some("right"),
            with(body(), json!({"model": "other"})),
            StatusCode::NOT_FOUND,
            "not_found_error",
        ),
        (
            Some("right"),
            with(body(), json!({"assets": image})),
            StatusCode::BAD_REQUEST,
            "invalid_request_error",
        ),
        (
            Some("right"),
            with(body(), json!({"state": "x".repeat(5_000)})),
            StatusCode::BAD_REQUEST,
            "invalid_request_error",
        ),
    ];
    for (key, body, status, error_type) in cases {
        let answer = send(key, body).await.expect_status(status);
        assert_eq!(answer.json()["detail"]["error_type"], error_type);
        assert!(answer.json()["detail"]["message"].is_string());
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(
            answer.header("x-typesafe-request-id"),
            answer.header("x-request-id")
        );
    }
    let answer = send(
        Some("right"),
        with(body(), json!({"x_trace": 1, "seed": 7})),
    )
    .await;
    let answer = answer.expect_status(StatusCode::OK);
    let ignored = answer.header("x-assay-ignored").expect("a list");
    let mut ignored: Vec<&str> = ignored.split(", ").collect();
    ignored.sort_unstable();
    assert_eq!(ignored, ["seed", "x_trace"]);
    assert!(answer.header("x-typesafe-request-id").is_some());
    let got = world
        .send(
            Request::get(SYSTEM_ONE)
                .header("authorization", "Bearer right")
                .body(Body::empty())
                .expect("a request"),
        )
        .await;
    got.expect_status(StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn d10_decisions_name_the_field_of_every_fault() {
    let world = World::new();
    let predicate = json!({"type": "predicate", "instructions": "So?"});
    let base = json!({"input": "x", "questions": [predicate]});
    let question =
        |question: Value| with(base.clone(), json!({"questions": [predicate, question]}));
    let choice = |choices: Value| {
        question(json!({"type": "choice", "instructions": "?", "choices": choices}))
    };
    let levels =
        |levels: Value| question(json!({"type": "score", "instructions": "?", "levels": levels}));
    let input = |input: Value| with(base.clone(), json!({"input": input}));
    let call = json!({"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"});
    let output = json!({"type": "function_call_output", "call_id": "2", "output": "x"});
    let cases = [
        (json!({"questions": [predicate]}), "input"),
        (input(json!(5)), "input"),
        (input(json!([])), "input"),
        (
            input(json!([{"role": "robot", "content": "x"}])),
            "input[0].role",
        ),
        (input(json!([{"content": "x"}])), "input[0].role"),
        (
            input(
                json!([{"role": "user", "content": [{"type": "input_image", "image_url": "data:"}]}]),
            ),
            "input[0].content[0].type",
        ),
        (
            input(json!([{"role": "user", "content": [{"type": "input_json", "data": 5}]}])),
            "input[0].content[0].data",
        ),
        (input(json!([call, output])), "input[1].call_id"),
        (json!({"input": "x"}), "questions"),
        (with(base.clone(), json!({"questions": []})), "questions"),
        (
            with(
                base.clone(),
                json!({"questions": vec![predicate.clone(); 401]}),
            ),
            "questions",
        ),
        (
            question(json!({"type": "predicate"})),
            "questions[1].instructions",
        ),
        (
            question(with(predicate.clone(), json!({"criteria": 1}))),
            "questions[1].criteria",
        ),
        (question(json!({"instructions": "?"})), "questions[1].type"),
        (choice(json!([{"value": "a"}])), "questions[1].choices"),
        (
            choice(json!([{"value": "a"}, {"value": 5}])),
            "questions[1].choices[1].value",
        ),
        (
            choice(json!([{"value": "a"}, {"value": ""}])),
            "questions[1].choices[1].value",
        ),
        (
            choice(json!([{"value": true}, {"value": "a"}, {"value": "true"}])),
            "questions[1].choices[2].value",
        ),
        (
            choice(json!([{"value": "a", "x": 1}, {"value": "b"}])),
            "questions[1].choices[0].x",
        ),
        (levels(json!([{"label": "a"}])), "questions[1].levels"),
        (
            levels(json!([{"label": "a"}, {}])),
            "questions[1].levels[1].label",
        ),
        (
            levels(Value::Array(vec![json!({"label": "a"}); 102])),
            "questions[1].levels",
        ),
        (with(base.clone(), json!({"receipt": 1})), "receipt"),
        (
            with(base.clone(), json!({"diagnostics": "yes"})),
            "diagnostics",
        ),
    ];
    for (body, param) in cases {
        let message = world.check_refused_by(DECISIONS, &body, param).await;
        if param == "questions[1].choices[2].value" {
            assert!(
                message.contains("choices[0].value"),
                "both are named: {message}"
            );
        }
    }
    assert_eq!(world.engine.stats().num_steps, 0, "no work was done");
}

#[tokio::test]
async fn conversations_become_text_and_a_lone_message_is_its_words() {
    let world = World::new();
    let ask = |input: Value| json!({"input": input, "questions": [{"type": "predicate", "instructions": "So?"}]});
    let mut found = Vec::new();
    for input in [
        json!("Hello there"),
        json!([{"role": "user", "content": "Hello there"}]),
        json!([{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello there"}]}]),
        json!("User:\nHi\n\nCall of f:\n{}\n\nOutput of f:\n{\"b\":1.0}\n\nAssistant:\nDone"),
        json!([
            {"role": "user", "content": "Hi"},
            {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "1", "output": [{"type": "input_json", "data": {"b": 1.0}}]},
            {"role": "assistant", "content": [{"type": "output_text", "text": "Done"}]},
        ]),
    ] {
        let reply = decide(&world, DECISIONS, &ask(input)).await;
        found.push(reply["answers"][0]["probability"].clone());
        let usage = reply["usage"].as_object().expect("an object");
        let names: Vec<&String> = usage.keys().collect();
        assert_eq!(
            names,
            [
                "input_tokens",
                "input_tokens_details",
                "output_tokens",
                "output_tokens_details",
                "total_tokens"
            ]
        );
    }
    assert!(
        found[0] == found[1] && found[1] == found[2] && found[3] == found[4],
        "{found:?}"
    );
}

#[tokio::test]
async fn bodies_may_come_compressed_and_stay_bounded() {
    let world = World::new();
    let plain = decide(&world, SYSTEM_ONE, &body()).await;
    let gzip = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).expect("memory");
        encoder.finish().expect("memory")
    };
    let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 1).expect("memory");
    let send = |encoding: &'static str, bytes: Vec<u8>| {
        let request = Request::post(SYSTEM_ONE)
            .header("content-type", "application/json")
            .header("content-encoding", encoding);
        let world = world.clone();
        async move {
            world
                .send(request.body(Body::from(bytes)).expect("a request"))
                .await
        }
    };
    let text = body().to_string().into_bytes();
    for (encoding, bytes) in [
        ("gzip", gzip(&text)),
        ("zstd", zstd(&text)),
        ("identity", text.clone()),
    ] {
        let answer = send(encoding, bytes).await.expect_status(StatusCode::OK);
        assert_eq!(answer.json()["answers"], plain["answers"], "{encoding}");
    }
    let bomb = vec![b' '; (32 << 20) + 1];
    for (encoding, bytes) in [("gzip", gzip(&bomb)), ("zstd", zstd(&bomb))] {
        assert!(bytes.len() < 1 << 20);
        let answer = send(encoding, bytes)
            .await
            .expect_status(StatusCode::PAYLOAD_TOO_LARGE);
        assert!(answer.json()["detail"]["message"].is_string());
    }
    send("br", text.clone())
        .await
        .expect_status(StatusCode::UNSUPPORTED_MEDIA_TYPE);
    for encoding in ["gzip", "zstd"] {
        let broken = send(encoding, text.clone()).await;
        broken.expect_status(StatusCode::BAD_REQUEST);
    }
}

#[tokio::test]
async fn models_are_listed_for_both_kinds_of_clients() {
    let list = World::new()
        .get("/v1/models")
        .await
        .expect_status(StatusCode::OK)
        .json();
    let cards = list["models"].as_array().expect("a list");
    let names: Vec<&Value> = cards.iter().map(|card| &card["name"]).collect();
    assert_eq!(names, [MODEL, "jev-latest"]);
    assert_eq!(cards[0]["release_date"], "2023-11-14");
}
