//! `tools` and `tool_choice`: well-formed, told to templates that take them, never passed over in silence.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::world::{Setup, World, ask, with};

/// A template that tells the model of its tools.
const TAKES_TOOLS: &str = "{% if tools %}{% for tool in tools %}<{{ tool.function.name }}>{% endfor %}\
    {% endif %}{% for message in messages %}{{ message['content'] }}{% endfor %}<|go|>";

fn tool(name: &str) -> Value {
    json!({"type": "function", "function": {
        "name": name, "description": "d", "strict": true,
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    }})
}

#[tokio::test]
async fn r5_a_model_that_cannot_be_told_of_tools_answers_plainly_and_says_so() {
    let world = World::new();
    let plain = world.reply(&ask("Hello")).await;
    for choice in [
        json!({}),
        json!({"tool_choice": "auto"}),
        json!({"tool_choice": "none"}),
    ] {
        let body = with(
            with(ask("Hello"), json!({"tools": [tool("f")]})),
            choice.clone(),
        );
        let answer = world.post(&body).await.expect_status(StatusCode::OK);
        assert_eq!(answer.json()["choices"], plain["choices"], "{choice}");
        assert_eq!(answer.header("x-assay-ignored"), Some("tools"), "{choice}");
    }
}

#[tokio::test]
async fn a_template_that_takes_tools_is_given_them_unless_calls_would_have_to_be_read() {
    let world = Setup {
        template: Some(TAKES_TOOLS),
        ..Setup::default()
    }
    .build();
    let plain = world.reply(&ask("Hello")).await;
    let body = with(ask("Hello"), json!({"tools": [tool("f"), tool("g")]}));
    let message = world.check_refused(&body, "tools").await;
    assert!(message.contains("not supported"), "{message}");

    let told = with(body, json!({"tool_choice": "none"}));
    let answer = world.post(&told).await.expect_status(StatusCode::OK);
    let reply = answer.json();
    assert_eq!(reply["choices"][0]["message"]["content"], "Hello");
    assert_eq!(answer.header("x-assay-ignored"), None);
    let prompt_tokens = |reply: &Value| reply["usage"]["prompt_tokens"].as_u64().expect("a count");
    assert_eq!(
        prompt_tokens(&reply),
        prompt_tokens(&plain) + 6,
        "`<f><g>` in the prompt"
    );
}

#[tokio::test]
async fn malformed_tools_and_choices_are_named() {
    let world = World::new();
    let many: Vec<Value> = (0..129).map(|index| tool(&format!("f{index}"))).collect();
    let function = |fields: Value| json!([{"type": "function", "function": fields}]);
    let cases = [
        (json!({"tools": {}}), "tools"),
        (json!({"tools": many}), "tools"),
        (json!({"tools": [5]}), "tools[0]"),
        (json!({"tools": [{}]}), "tools[0].type"),
        (json!({"tools": [{"type": "web_search"}]}), "tools[0].type"),
        (
            json!({"tools": [{"type": "function"}]}),
            "tools[0].function",
        ),
        (
            json!({"tools": function(json!({}))}),
            "tools[0].function.name",
        ),
        (
            json!({"tools": function(json!({"name": ""}))}),
            "tools[0].function.name",
        ),
        (
            json!({"tools": function(json!({"name": "a b"}))}),
            "tools[0].function.name",
        ),
        (
            json!({"tools": function(json!({"name": "x".repeat(65)}))}),
            "tools[0].function.name",
        ),
        (
            json!({"tools": function(json!({"name": "f", "parameters": []}))}),
            "tools[0].function.parameters",
        ),
        (
            json!({"tools": [tool("f"), tool("f")]}),
            "tools[1].function.name",
        ),
        (
            json!({"tools": [tool("f")], "tool_choice": "required"}),
            "tool_choice",
        ),
        (
            json!({"tools": [tool("f")], "tool_choice": "any"}),
            "tool_choice",
        ),
        (
            json!({"tools": [tool("f")], "tool_choice": 5}),
            "tool_choice",
        ),
        (
            json!({"tools": [tool("f")], "tool_choice":
            {"type": "function", "function": {"name": "f"}}}),
            "tool_choice",
        ),
    ];
    for (bad, param) in cases {
        world.check_refused(&with(ask("x"), bad), param).await;
    }
    assert_eq!(world.engine.stats().num_steps, 0, "no work was done");
}
