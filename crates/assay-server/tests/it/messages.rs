//! `POST /v1/messages` and its token count: the Anthropic shape, streamed and not.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::{Value, json};

use crate::reasoning::OPENED;
use crate::vocab::{self, END_THINK};
use crate::world::{Answer, MODEL, Setup, World, config, order, with};

const MESSAGES: &str = "/v1/messages";
const COUNT: &str = "/v1/messages/count_tokens";

/// A template that knows of tools, calls and thoughts.
const ALL: &str = "{% for tool in tools or [] %}<{{ tool.function.name }}>{% endfor %}\
    {% for message in messages %}{{ message.role }}:{% if message.reasoning_content %}<think>{{ message.reasoning_content }}</think>\
    {% endif %}{{ message.content }}{% for call in message.tool_calls or [] %}<tool_call>\n\
    {\"name\": \"{{ call.function.name }}\", \"arguments\": {{ call.function.arguments | tojson }}}\n</tool_call>\
    {% endfor %};{% endfor %}{% if add_generation_prompt %}<|go|>{% endif %}";

fn world(template: &'static str) -> World {
    Setup {
        template: Some(template),
        ..Setup::default()
    }
    .build()
}

fn ask_text(content: String) -> Value {
    json!({
        "model": MODEL, "max_tokens": 200, "temperature": 0, "seed": 7,
        "messages": [{"role": "user", "content": content}],
    })
}

fn ask(text: &str) -> Value {
    ask_text(order(&vocab::encode(text.as_bytes())))
}

/// Name and payload of each event of a stream.
fn events(answer: &Answer) -> Vec<(String, Value)> {
    let text = std::str::from_utf8(&answer.body).expect("UTF-8");
    let events = text.split_terminator("\n\n").map(|event| {
        let (name, data) = event.split_once('\n').expect("two lines");
        let name = name.strip_prefix("event: ").expect("a name").to_owned();
        let data: Value =
            serde_json::from_str(data.strip_prefix("data: ").expect("data")).expect("JSON");
        assert_eq!(data["type"], name);
        (name, data)
    });
    events.collect()
}

/// Adds up a stream, checking its order.
fn collect(events: &[(String, Value)]) -> Value {
    let (first, rest) = events.split_first().expect("events");
    assert_eq!(first.0, "message_start");
    let mut message = first.1["message"].clone();
    assert_eq!(message["content"], json!([]));
    let mut arguments = String::new();
    let mut is_open = false;
    for (name, event) in rest {
        let content = message["content"].as_array_mut().expect("blocks");
        let index = event["index"].as_u64().map(|index| index as usize);
        match name.as_str() {
            "content_block_start" => {
                assert!(!is_open, "one block at a time");
                assert_eq!(index, Some(content.len()));
                content.push(event["content_block"].clone());
                is_open = true;
            }
            "content_block_delta" => {
                assert!(is_open && index == Some(content.len() - 1));
                let block = content.last_mut().expect("a block");
                let (field, delta) = match event["delta"]["type"].as_str().expect("a type") {
                    "text_delta" => ("text", &event["delta"]["text"]),
                    "thinking_delta" => ("thinking", &event["delta"]["thinking"]),
                    "input_json_delta" => {
                        arguments.push_str(event["delta"]["partial_json"].as_str().expect("text"));
                        continue;
                    }
                    other => panic!("{other}"),
                };
                let text = format!(
                    "{}{}",
                    block[field].as_str().expect("text"),
                    delta.as_str().expect("text")
                );
                block[field] = json!(text);
            }
            "content_block_stop" => {
                assert!(is_open && index == Some(content.len() - 1));
                is_open = false;
                let block = content.last_mut().expect("a block");
                if block["type"] == "tool_use" {
                    block["input"] =
                        serde_json::from_str(&arguments).unwrap_or_else(|_| json!(arguments));
                    arguments.clear();
                }
            }
            "message_delta" => {
                assert!(!is_open);
                message["stop_reason"] = event["delta"]["stop_reason"].clone();
                message["stop_sequence"] = event["delta"]["stop_sequence"].clone();
                message["usage"] = event["usage"].clone();
            }
            "message_stop" => {}
            other => panic!("{other}"),
        }
    }
    assert_eq!(rest.last().expect("an end").0, "message_stop");
    message
}

fn comparable(mut message: Value) -> Value {
    message["id"] = Value::Null;
    message["usage"]["input_tokens"] = Value::Null;
    message["usage"]["cache_read_input_tokens"] = Value::Null;
    for block in message["content"].as_array_mut().expect("blocks") {
        if block["type"] == "tool_use" {
            assert!(
                block["id"]
                    .as_str()
                    .is_some_and(|id| id.starts_with("toolu_"))
            );
            block["id"] = Value::Null;
        }
    }
    message
}

/// Sends a request both ways; the message.
async fn check_both(world: &World, body: &Value) -> Value {
    let answer = world.post_to(MESSAGES, body).await;
    let whole = answer.expect_status(StatusCode::OK).json();
    let streamed = with(body.clone(), json!({"stream": true}));
    let answer = world
        .post_to(MESSAGES, &streamed)
        .await
        .expect_status(StatusCode::OK);
    let collected = collect(&events(&answer));
    assert_eq!(comparable(collected), comparable(whole.clone()), "{body}");
    whole
}

#[tokio::test]
async fn fault_62_a_message_is_blocks_with_a_reason() {
    let world = World::new();
    let message = check_both(&world, &ask("Hello 日本")).await;
    assert_eq!(message["type"], "message");
    assert_eq!(message["role"], "assistant");
    assert_eq!(message["model"], MODEL);
    assert!(
        message["id"]
            .as_str()
            .is_some_and(|id| id.starts_with("msg_"))
    );
    assert_eq!(
        message["content"],
        json!([{"type": "text", "text": "Hello 日本", "citations": null}])
    );
    assert_eq!(message["stop_reason"], "end_turn");
    assert_eq!(message["usage"]["output_tokens"], "Hello 日本".len() + 1);

    let cut = check_both(&world, &with(ask("Hello"), json!({"max_tokens": 2}))).await;
    assert_eq!(cut["stop_reason"], "max_tokens");
    // Fault 62: the matched stop is named.
    let stopped = check_both(
        &world,
        &with(ask("Hello"), json!({"stop_sequences": ["x", "l"]})),
    )
    .await;
    assert_eq!(stopped["stop_reason"], "stop_sequence");
    assert_eq!(stopped["stop_sequence"], "l");
    assert_eq!(stopped["content"][0]["text"], "He");
    let empty = check_both(&world, &ask("")).await;
    assert_eq!(empty["content"], json!([]));
}

#[tokio::test]
async fn thoughts_are_a_block_where_they_are_asked_for() {
    let world = world(OPENED);
    let ids = [
        vocab::encode(b"hm"),
        vec![END_THINK],
        vocab::encode(b"\n\nyes"),
    ]
    .concat();
    let body = ask_text(format!("#open 2#{}", order(&ids)));
    let thinking = json!({"thinking": {"type": "enabled", "budget_tokens": 1024}});
    let message = check_both(&world, &with(body.clone(), thinking)).await;
    assert_eq!(
        message["content"],
        json!([
            {"type": "thinking", "thinking": "hm", "signature": ""},
            {"type": "text", "text": "yes", "citations": null},
        ])
    );
    // The budget ends them; the rest is text.
    let short = json!({"thinking": {"type": "enabled", "budget_tokens": 1}, "max_tokens": 3});
    let message = check_both(&world, &with(body.clone(), short)).await;
    assert_eq!(message["content"][0]["thinking"], "h");
    // Not asked for: the template closes them before they begin.
    let message = check_both(&world, &body).await;
    assert_eq!(message["content"][0]["type"], "text");
}

#[tokio::test]
async fn tools_are_called_and_forced() {
    let world = world(ALL);
    let tools = json!([{"name": "look", "description": "d", "input_schema": {
        "type": "object", "properties": {"at": {"enum": ["é", "b"]}}, "required": ["at"], "additionalProperties": false,
    }}]);
    let text =
        "Let me.<tool_call>\n{\"name\": \"look\", \"arguments\": {\"at\": \"é\"}}\n</tool_call>";
    let body = with(ask(text), json!({"tools": tools}));
    let message = check_both(&world, &body).await;
    assert_eq!(message["stop_reason"], "tool_use");
    assert_eq!(message["content"][0]["text"], "Let me.");
    let call = &message["content"][1];
    assert_eq!(call["name"], "look");
    assert_eq!(call["input"], json!({"at": "é"}));
    for choice in [
        json!({"type": "any"}),
        json!({"type": "tool", "name": "look"}),
    ] {
        let body = with(
            ask("no"),
            json!({"tools": tools, "tool_choice": choice, "max_tokens": 1000}),
        );
        let message = check_both(&world, &body).await;
        let content = message["content"].as_array().expect("blocks");
        assert!(
            content.iter().all(|block| block["type"] == "tool_use"),
            "{message}"
        );
        assert!(["é", "b"].contains(&content[0]["input"]["at"].as_str().expect("text")));
    }
    let body = with(
        ask(text),
        json!({"tools": tools, "tool_choice": {"type": "none"}}),
    );
    assert_eq!(check_both(&world, &body).await["content"][0]["text"], text);
}

#[tokio::test]
async fn a_format_is_enforced() {
    let world = World::new();
    let format = json!({"type": "json_schema", "schema": {"enum": [{"a": 1}]}});
    let body = with(
        ask("no JSON"),
        json!({"output_config": {"format": format, "effort": "low"}}),
    );
    let message = check_both(&world, &body).await;
    let text = message["content"][0]["text"].as_str().expect("text");
    let value: Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(value, json!({"a": 1}));
}

#[tokio::test]
async fn blocks_become_the_templates_messages() {
    let world = world(ALL);
    let body = json!({
        "model": MODEL,
        "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "t", "signature": "x"},
                {"type": "text", "text": "b"},
                {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"k": [1, "é"]}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "r"}]},
                {"type": "text", "text": "c"},
            ]},
        ],
    });
    let rendered = "system:s;user:a;assistant:<think>t</think>b<tool_call>\n{\"name\": \"f\", \"arguments\": {\"k\": [1, \"é\"]}}\n\
        </tool_call>;tool:r;user:c;<|go|>";
    let answer = world
        .post_to(
            "/tokenize",
            &json!({"prompt": rendered, "add_special_tokens": false}),
        )
        .await;
    let expected = answer.expect_status(StatusCode::OK).json()["count"].clone();
    let answer = world
        .post_to(COUNT, &body)
        .await
        .expect_status(StatusCode::OK);
    assert_eq!(answer.json(), json!({"input_tokens": expected}));
}

/// The error object of an answer in the Anthropic envelope.
fn error(answer: &Answer, status: StatusCode, kind: &str) -> String {
    let body = answer.json();
    assert_eq!(answer.status, status, "{body}");
    assert_eq!(body["type"], "error");
    assert_eq!(body["error"]["type"], kind, "{body}");
    assert_eq!(body["error"].as_object().map(serde_json::Map::len), Some(2));
    body["error"]["message"]
        .as_str()
        .expect("a message")
        .to_owned()
}

#[tokio::test]
async fn errors_are_in_the_routes_own_envelope() {
    let world = World::new();
    let user = |content: Value| json!([{"role": "user", "content": content}]);
    let bad = [
        (json!({"max_tokens": null}), "max_tokens"),
        (json!({"max_tokens": 0}), "max_tokens"),
        (json!({"temperature": 1.5}), "temperature"),
        (json!({"stop_sequences": "x"}), "stop_sequences"),
        (json!({"stop_sequences": [""]}), "stop_sequences[0]"),
        (json!({"thinking": {"type": "much"}}), "thinking.type"),
        (json!({"mcp_servers": []}), "mcp_servers"),
        (
            json!({"output_config": {"effort": "much"}}),
            "output_config.effort",
        ),
        (
            json!({"output_config": {"format": {"type": "text"}}}),
            "output_config.format.type",
        ),
        (
            json!({"output_config": {"format": {"type": "json_schema"}}}),
            "output_config.format.schema",
        ),
        (
            json!({"output_config": {"format": {"type": "json_schema", "schema": {"not": {}}}}}),
            "output_config.format.schema",
        ),
        (json!({"messages": []}), "messages"),
        (
            json!({"messages": [{"role": "system", "content": "x"}]}),
            "messages[0].role",
        ),
        (
            json!({"messages": [{"role": "user"}]}),
            "messages[0].content",
        ),
        (
            json!({"messages": user(json!([{"type": "image"}]))}),
            "messages[0].content[0].type",
        ),
        (
            json!({"messages": user(json!([{"type": "tool_result"}]))}),
            "messages[0].content[0].tool_use_id",
        ),
        (
            json!({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}),
            "messages",
        ),
        (json!({"tools": [{"name": "f"}]}), "tools[0].input_schema"),
        (
            json!({"tools": [{"type": "bash_20250124", "name": "bash"}]}),
            "tools[0].type",
        ),
        (json!({"tool_choice": {"type": "any"}}), "tool_choice"),
    ];
    for (more, field) in bad {
        let answer = world.post_to(MESSAGES, &with(ask("x"), more)).await;
        let message = error(&answer, StatusCode::BAD_REQUEST, "invalid_request_error");
        assert!(
            message.contains(&format!("`{field}`")),
            "{field}: {message}"
        );
    }
    assert_eq!(world.engine.stats().num_steps, 0, "no work was done");
    let answer = world
        .post_to(MESSAGES, &with(ask("x"), json!({"model": "other"})))
        .await;
    error(&answer, StatusCode::NOT_FOUND, "not_found_error");
    let answer = world.get(MESSAGES).await;
    error(
        &answer,
        StatusCode::METHOD_NOT_ALLOWED,
        "invalid_request_error",
    );
    let answer = world.get("/v1/messages/batches").await;
    error(&answer, StatusCode::NOT_FOUND, "not_found_error");
    // Another route keeps its own.
    let answer = world.get("/v1/messagesx").await;
    answer.error(StatusCode::NOT_FOUND);

    let text = format!("{}#nan 3#", order(&vocab::encode(b"abcdef")));
    let body = with(ask_text(text), json!({"stream": true}));
    let answer = world
        .post_to(MESSAGES, &body)
        .await
        .expect_status(StatusCode::OK);
    let events = events(&answer);
    let (name, last) = events.last().expect("events");
    assert_eq!(name, "error");
    assert_eq!(last["error"]["type"], "api_error");
}

#[tokio::test]
async fn a_key_may_come_in_the_clients_own_header() {
    let mut config = config();
    config.api_keys = vec!["secret".to_owned()];
    let world = Setup {
        config,
        ..Setup::default()
    }
    .build();
    for (name, value, status) in [
        ("x-api-key", "secret", StatusCode::OK),
        ("x-api-key", "wrong", StatusCode::UNAUTHORIZED),
        ("authorization", "Bearer secret", StatusCode::OK),
        ("authorization", "secret", StatusCode::UNAUTHORIZED),
    ] {
        let request = Request::post(MESSAGES)
            .header("content-type", "application/json")
            .header(name, value)
            .body(Body::from(ask("x").to_string()))
            .expect("a request");
        let answer = world.send(request).await;
        if status == StatusCode::UNAUTHORIZED {
            error(&answer, status, "authentication_error");
        } else {
            answer.expect_status(status);
        }
    }
}
