//! `response_format`: enforced while generating, scored like any other reply, refused by keyword and path.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::scored::{bits, entries, scored};
use crate::stream::check_streams_alike;
use crate::world::{Setup, World, ask_message, with};

fn schema_format(schema: &Value) -> Value {
    json!({"response_format": {
        "type": "json_schema",
        "json_schema": {"name": "reply", "strict": true, "schema": schema},
    }})
}

fn verdict() -> Value {
    json!({
        "type": "object",
        "properties": {
            "label": {"enum": ["größer", "日本", "no"]},
            "score": {"type": "integer", "minimum": 0, "maximum": 10},
            "why": {"type": "string", "maxLength": 12},
        },
        "required": ["label", "score", "why"],
        "additionalProperties": false,
    })
}

fn is_verdict(value: &Value) -> bool {
    let members = value.as_object().expect("an object");
    members.len() == 3
        && ["größer", "日本", "no"]
            .iter()
            .any(|label| value["label"] == *label)
        && value["score"].as_u64().is_some_and(|score| score <= 10)
        && value["why"]
            .as_str()
            .is_some_and(|why| why.chars().count() <= 12)
}

/// One request of row R5: streamed and not, an entry for each visible token, and the form that was asked for.
async fn check_r5(world: &World, format: &Value, max_tokens: &Value) {
    let case = format!("{format} {max_tokens}");
    let body = with(
        ask_message("Rate this: it was fine."),
        json!({"model": "default"}),
    );
    let body = with(body, format.clone());
    let body = scored(with(body, max_tokens.clone()), 2);
    let reply = check_streams_alike(world, &body).await;
    let choice = &reply["choices"][0];
    let content = choice["message"]["content"].as_str().expect("text");
    let spelled: String = entries(&reply)
        .iter()
        .map(|entry| entry["token"].as_str().expect("text"))
        .collect();
    assert_eq!(spelled, content, "{case}");
    let has_ended = choice["finish_reason"] == "stop";
    let num_drawn = reply["usage"]["completion_tokens"]
        .as_u64()
        .expect("a count");
    let num_visible = num_drawn - u64::from(has_ended);
    assert_eq!(entries(&reply).len() as u64, num_visible, "{case}");

    match format["response_format"]["type"].as_str() {
        Some(kind) if has_ended => {
            let value: Value = serde_json::from_str(content)
                .unwrap_or_else(|error| panic!("{case}: {content:?}: {error}"));
            assert!(value.is_object(), "{case}: {content}");
            assert!(
                kind != "json_schema" || is_verdict(&value),
                "{case}: {content}"
            );
        }
        Some(_) => {
            assert_eq!(choice["finish_reason"], "length", "{case}");
            assert!(content.starts_with('{'), "{case}: {content:?}");
        }
        None => {}
    }
}

fn formats() -> Vec<Value> {
    vec![
        json!({}),
        json!({"response_format": {"type": "json_object"}}),
        schema_format(&verdict()),
        json!({"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]}),
    ]
}

#[tokio::test]
async fn r5_s9_any_length_streamed_or_not_plain_json_or_tools() {
    let world = Setup {
        context_length: 260,
        ..Setup::default()
    }
    .build();
    for format in formats() {
        for max_tokens in [
            json!({"max_tokens": 1}),
            json!({"max_tokens": 5}),
            json!({}),
        ] {
            check_r5(&world, &format, &max_tokens).await;
            for seed in 0..3 {
                let random = json!({"temperature": 1, "seed": seed});
                check_r5(&world, &format, &with(max_tokens.clone(), random)).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r5_s9_the_same_on_the_real_model() {
    let world = crate::real_model::start();
    for format in formats() {
        let is_bounded = format["response_format"]["type"] == "json_schema";
        let most = if is_bounded {
            json!({})
        } else {
            json!({"max_tokens": 40})
        };
        for max_tokens in [json!({"max_tokens": 1}), json!({"max_tokens": 5}), most] {
            check_r5(&world, &format, &max_tokens).await;
        }
    }
}

/// Formats of days and times are followed over a whole vocabulary, within the limits of a step.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s9_days_and_times_on_the_real_model() {
    let world = crate::real_model::start();
    let text = |format: &str| json!({"type": "string", "format": format});
    let schema = json!({
        "type": "object",
        "properties": {"day": text("date"), "at": text("time"), "when": text("date-time")},
        "required": ["day", "at", "when"],
        "additionalProperties": false,
    });
    for temperature in [0, 1] {
        let more =
            json!({"model": "default", "temperature": temperature, "seed": 3, "max_tokens": 90});
        let body = with(ask_message("When is the next leap day?"), more);
        let reply = world.reply(&with(body, schema_format(&schema))).await;
        let choice = &reply["choices"][0];
        let content = choice["message"]["content"].as_str().expect("text");
        // Fractions of a second may go on.
        if choice["finish_reason"] == "stop" {
            let value: Value = serde_json::from_str(content).expect("JSON");
            let day = value["day"].as_str().expect("a date");
            assert_eq!(day.len(), "2024-02-29".len(), "{content}");
            let when = value["when"].as_str().expect("a date and a time");
            assert!(when.len() >= "2024-02-29T00:00:00Z".len(), "{content}");
        } else {
            assert_eq!(choice["finish_reason"], "length", "{content}");
        }
    }
}

/// The only reply that `{"const": null}` allows.
#[tokio::test]
async fn v1_v7_forced_tokens_keep_their_raw_value() {
    let world = World::new();
    let format = schema_format(&json!({"const": null}));
    let body = scored(with(ask_message("hi"), format), 20);
    let raw = world.reply(&body).await;
    assert_eq!(raw["choices"][0]["message"]["content"], "null");
    let processed = with(body, json!({"logprobs_mode": "processed"}));
    let processed = world.reply(&processed).await;
    for (index, (raw, processed)) in entries(&raw).iter().zip(entries(&processed)).enumerate() {
        let logprob = raw["logprob"].as_f64().expect("a number");
        assert!(
            logprob < -1e-3,
            "token {index}: {logprob} is not of the whole vocabulary"
        );
        assert_ne!(
            raw["top_logprobs"][0]["token"], raw["token"],
            "token {index}: the model's own"
        );
        assert_eq!(
            bits(&processed["logprob"]),
            0.0_f64.to_bits(),
            "token {index}: certain"
        );
        let last = processed["top_logprobs"]
            .as_array()
            .and_then(|list| list.last());
        assert_eq!(
            last.expect("20 alternatives")["logprob"],
            -9999.0,
            "token {index}: masked"
        );
    }
}

#[tokio::test]
async fn o5_neighbours_of_a_constrained_request_notice_nothing() {
    let world = World::new();
    let plain = |index: u64| {
        let more = json!({"max_tokens": 20, "temperature": 1, "seed": index});
        scored(with(ask_message(&format!("neighbour {index}")), more), 3)
    };
    let constrained = scored(with(ask_message("x"), schema_format(&verdict())), 3);
    let mut alone = vec![world.reply(&constrained).await["choices"].clone()];
    for index in 0..3 {
        alone.push(world.reply(&plain(index)).await["choices"].clone());
    }
    let (first, second, third, fourth) = (plain(0), plain(1), plain(2), constrained);
    let (first, second, third, fourth) = tokio::join!(
        world.reply(&first),
        world.reply(&second),
        world.reply(&third),
        world.reply(&fourth)
    );
    for (index, together) in [fourth, first, second, third].iter().enumerate() {
        assert_eq!(together["choices"], alone[index], "request {index}");
    }
}

/// Faults 127, 143, 145: nothing is generated under a schema that is not enforced in full.
#[tokio::test]
async fn fault_127_fault_143_what_cannot_be_enforced_is_refused_by_keyword_and_path() {
    const SCHEMA: &str = "response_format.json_schema.schema";
    let world = World::new();
    let nested = (0..80).fold(json!({}), |inner, _| json!({"items": inner}));
    let schemas = [
        (json!({"not": {}}), "", "not"),
        (
            json!({"properties": {"a": {"uniqueItems": true}}}),
            ".properties.a",
            "uniqueItems",
        ),
        (json!({"anyOf": [{"pattern": "("}]}), ".anyOf[0]", "pattern"),
        (json!({"$ref": "#/$defs/x"}), "", "$ref"),
        (json!({"type": "number", "format": "money"}), "", "format"),
        (json!({"type": "x"}), "", "type"),
        (json!({"description": "x".repeat(300_000)}), "", "bytes"),
        (nested, "", "deeper"),
        (json!(false), "", "satisfies"),
    ];
    for stream in [false, true] {
        for (schema, path, word) in &schemas {
            let body = with(ask_message("x"), schema_format(schema));
            let body = with(body, json!({"stream": stream}));
            let message = world.check_refused(&body, &format!("{SCHEMA}{path}")).await;
            assert!(
                message.contains(word) && message.len() < 2_000,
                "{word}: {message}"
            );
        }
    }

    let shapes = [
        (
            json!({"type": "json_schema"}),
            "response_format.json_schema",
        ),
        (
            json!({"type": "json_schema", "json_schema": {"schema": {}}}),
            "response_format.json_schema.name",
        ),
        (
            json!({"type": "json_schema", "json_schema": {"name": "a b", "schema": {}}}),
            "response_format.json_schema.name",
        ),
        (
            json!({"type": "json_schema", "json_schema": {"name": "a"}}),
            SCHEMA,
        ),
        (
            json!({"type": "json_schema", "json_schema": {"name": "a", "schema": []}}),
            SCHEMA,
        ),
        (
            json!({"type": "json_schema", "json_schema": {"name": "a", "schema": {}, "strict": 1}}),
            "response_format.json_schema.strict",
        ),
        (
            json!({"type": "json_object", "schema": {}}),
            "response_format.schema",
        ),
    ];
    for (format, param) in shapes {
        let body = with(ask_message("x"), json!({"response_format": format}));
        world.check_refused(&body, param).await;
    }
    assert_eq!(world.engine.stats().num_steps, 0, "no work was done");
}

/// `strict: false` asks for less than enforcement; more than asked is fine.
#[tokio::test]
async fn schemas_are_enforced_whatever_strict_says() {
    let world = World::new();
    for strict in [json!(true), json!(false), json!(null)] {
        let format = json!({"type": "json_schema", "json_schema":
            {"name": "a", "description": "d", "strict": strict, "schema": {"const": true}}});
        let body = with(ask_message("x"), json!({"response_format": format}));
        let answer = world.post(&body).await.expect_status(StatusCode::OK);
        assert_eq!(
            answer.json()["choices"][0]["message"]["content"],
            "true",
            "{strict}"
        );
        assert_eq!(answer.header("x-assay-ignored"), None, "{strict}");
    }
}
