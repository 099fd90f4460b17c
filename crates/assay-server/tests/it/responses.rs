//! The Responses API: row R13 over HTTP.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::completions::list;
use crate::scored::{entries, scored};
use crate::vocab;
use crate::world::{Setup, World, ask, order, with};

const RESPONSES: &str = "/v1/responses";

fn respond(text: &str) -> Value {
    json!({"input": order(&vocab::encode(text.as_bytes())), "temperature": 0, "seed": 7})
}

/// Payloads of a stream whose events have names, which must be those of the payloads.
fn events(body: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(body).expect("UTF-8");
    let mut blocks: Vec<_> = text.split_terminator("\n\n").collect();
    assert_eq!(blocks.pop(), Some("data: [DONE]"), "{text}");
    let numbered = blocks.into_iter().enumerate();
    let parsed = numbered.map(|(number, block)| {
        let (name, data) = block.split_once("\ndata: ").expect("an event and its data");
        let data: Value = serde_json::from_str(data).expect("JSON");
        assert_eq!(
            Some(name),
            data["type"]
                .as_str()
                .map(|kind| format!("event: {kind}"))
                .as_deref()
        );
        assert_eq!(data["sequence_number"], number);
        data
    });
    parsed.collect()
}

/// Asks both ways and checks that the stream adds up to the whole reply.
async fn check_response(world: &World, body: &Value) -> Value {
    let answer = world.post_to(RESPONSES, body).await;
    let whole = answer.expect_status(StatusCode::OK).json();
    let part = &whole["output"][0]["content"][0];
    let streamed = with(body.clone(), json!({"stream": true}));
    let answer = world
        .post_to(RESPONSES, &streamed)
        .await
        .expect_status(StatusCode::OK);
    let events = events(&answer.body);
    let kinds: Vec<_> = events
        .iter()
        .map(|event| event["type"].as_str().expect("a name"))
        .collect();
    assert_eq!(
        kinds[..4],
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added"
        ]
    );
    let (mut text, mut logprobs) = (String::new(), Vec::new());
    for event in events
        .iter()
        .filter(|event| event["type"] == "response.output_text.delta")
    {
        let delta = event["delta"].as_str().expect("text");
        let entries = list(&event["logprobs"]);
        if !entries.is_empty() {
            let spelled: String = entries
                .iter()
                .map(|entry| entry["token"].as_str().expect("text"))
                .collect();
            assert_eq!(spelled, delta, "o3");
        }
        text.push_str(delta);
        logprobs.extend(entries.iter().cloned());
    }
    assert_eq!(part["text"], text);
    assert_eq!(part["logprobs"].to_string(), json!(logprobs).to_string());
    let mut last = events.last().expect("events")["response"].clone();
    let mut expected = whole.clone();
    for reply in [&mut last, &mut expected] {
        reply["id"] = Value::Null;
        reply["created_at"] = Value::Null;
        reply["output"][0]["id"] = Value::Null;
        reply["usage"]["input_tokens_details"] = Value::Null;
    }
    assert_eq!(last, expected);
    whole
}

#[tokio::test]
async fn r13_entries_are_on_the_text_and_those_of_a_chat() {
    let world = World::new();
    for text in ["Hello, world", "日本語 🙂", ""] {
        let more = json!({"include": ["message.output_text.logprobs"], "top_logprobs": 3});
        let scored_response = check_response(&world, &with(respond(text), more)).await;
        let part = &scored_response["output"][0]["content"][0];
        assert_eq!(part["text"], text);
        let chat = world
            .reply(&with(
                scored(ask(text), 3),
                json!({"return_token_ids": false}),
            ))
            .await;
        assert_eq!(
            part["logprobs"].to_string(),
            json!(entries(&chat)).to_string(),
            "the same bits"
        );
        let plain = check_response(&world, &respond(text)).await;
        assert_eq!(plain["output"][0]["content"][0]["text"], text);
        assert_eq!(plain["output"][0]["content"][0]["logprobs"], json!([]));
        assert_eq!(plain["status"], "completed");
        assert_eq!(plain["usage"]["output_tokens"], text.len() + 1);
    }
    let cut = check_response(
        &world,
        &with(respond("abcdef"), json!({"max_output_tokens": 3})),
    )
    .await;
    assert_eq!(cut["status"], "incomplete");
    assert_eq!(cut["incomplete_details"]["reason"], "max_output_tokens");
    assert_eq!(cut["output"][0]["content"][0]["text"], "abc");
}

#[tokio::test]
async fn inputs_are_rendered_as_the_messages_of_a_chat() {
    let world = World::new();
    let words = order(&[72, 105]);
    let input = json!([
        {"role": "user", "content": [{"type": "input_text", "text": "a"}]},
        {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
         "content": [{"type": "output_text", "text": "b", "annotations": [], "logprobs": []}]},
        {"role": "user", "content": words},
    ]);
    let body = json!({"input": input, "instructions": "be brief", "temperature": 0, "seed": 1});
    let reply = check_response(&world, &body).await;
    assert_eq!(reply["output"][0]["content"][0]["text"], "Hi");
    assert_eq!(reply["instructions"], "be brief");
    let chat = json!({"temperature": 0, "messages": [
        {"role": "system", "content": "be brief"}, {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"}, {"role": "user", "content": words},
    ]});
    let chat = world.reply(&chat).await;
    assert_eq!(
        reply["usage"]["input_tokens"],
        chat["usage"]["prompt_tokens"]
    );
}

#[tokio::test]
async fn s9_a_schema_is_enforced() {
    let world = World::new();
    let format = json!({"type": "json_schema", "name": "v", "strict": true, "schema": {
        "type": "object", "properties": {"v": {"enum": ["a", "bc"]}}, "required": ["v"], "additionalProperties": false,
    }});
    let body =
        json!({"input": "free", "text": {"format": format}, "max_output_tokens": 60, "seed": 1});
    let reply = check_response(&world, &body).await;
    let text = reply["output"][0]["content"][0]["text"]
        .as_str()
        .expect("text");
    let value: Value = serde_json::from_str(text).expect("JSON");
    assert!(value["v"] == "a" || value["v"] == "bc", "{text}");
    assert_eq!(reply["text"]["format"], format);
}

#[tokio::test]
async fn wrong_asks_name_their_field() {
    let world = Setup {
        context_length: 60,
        ..Setup::default()
    }
    .build();
    let cases = [
        (json!({"input": null}), "input"),
        (json!({"input": 5}), "input"),
        (json!({"input": []}), "input"),
        (json!({"input": "x".repeat(100)}), "input"),
        (
            json!({"input": [{"role": "robot", "content": "x"}]}),
            "input[0].role",
        ),
        (json!({"input": [{"content": "x"}]}), "input[0].role"),
        (json!({"input": [{"role": "user"}]}), "input[0].content"),
        (
            json!({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}),
            "input[0].content[0].type",
        ),
        (
            json!({"input": [{"type": "function_call", "name": "f"}]}),
            "input[0].call_id",
        ),
        (json!({"instructions": 5}), "instructions"),
        (json!({"max_output_tokens": 0}), "max_output_tokens"),
        (json!({"max_output_tokens": 100}), "max_output_tokens"),
        (
            json!({"include": ["reasoning.encrypted_content"]}),
            "include[0]",
        ),
        (json!({"top_logprobs": 2}), "top_logprobs"),
        (json!({"top_logprobs": 21}), "top_logprobs"),
        (
            json!({"previous_response_id": "resp_1"}),
            "previous_response_id",
        ),
        (json!({"background": true}), "background"),
        (json!({"tools": [{"type": "web_search"}]}), "tools[0].type"),
        (json!({"tool_choice": "required"}), "tool_choice"),
        (json!({"reasoning": {"effort": "much"}}), "reasoning.effort"),
        (
            json!({"text": {"format": {"type": "yaml"}}}),
            "text.format.type",
        ),
        (
            json!({"text": {"format": {"type": "json_schema", "schema": {}}}}),
            "text.format.name",
        ),
        (
            json!({"text": {"format": {"type": "json_schema", "name": "x", "schema": {"not": {}}}}}),
            "text.format.schema",
        ),
        (json!({"temperature": 3}), "temperature"),
    ];
    for (bad, param) in cases {
        world
            .check_refused_by(RESPONSES, &with(respond("x"), bad), param)
            .await;
    }
    assert_eq!(world.engine.stats().num_steps, 0, "no work was done");
    let harmless = json!({
        "store": false, "metadata": {"a": "b"}, "tools": [], "tool_choice": "auto", "truncation": "disabled",
        "user": "u", "reasoning": null, "include": [], "parallel_tool_calls": true, "vendor": 1,
    });
    let answer = world
        .post_to(RESPONSES, &with(respond("x"), harmless))
        .await;
    let answer = answer.expect_status(StatusCode::OK);
    assert_eq!(answer.header("x-assay-ignored"), Some("vendor"));
    assert_eq!(answer.json()["metadata"], json!({"a": "b"}));
}

/// A template that knows of tools and opens the reasoning, unless it is told not to.
const PARTS: &str = "{% for tool in tools or [] %}<{{ tool.function.name }}>{% endfor %}\
    {% for message in messages %}{{ message.role }}:{{ message.reasoning_content }}|{{ message.content }}\
    {% for call in message.tool_calls or [] %}<tool_call>\n\
    {\"name\": \"{{ call.function.name }}\", \"arguments\": {{ call.function.arguments | tojson }}}\n</tool_call>\
    {% endfor %};{% endfor %}{% if add_generation_prompt %}<|go|>{% if enable_thinking is defined and not enable_thinking %}\
    <think></think>{% else %}<think>\n{% endif %}{% endif %}";

/// Adds up the items of a stream.
fn items(events: &[Value]) -> Vec<Value> {
    let mut items: Vec<Value> = Vec::new();
    let mut deltas = String::new();
    for event in events {
        let index = event["output_index"].as_u64().map(|index| index as usize);
        match event["type"].as_str().expect("a type") {
            "response.output_item.added" => {
                assert_eq!(index, Some(items.len()), "one after the other");
                items.push(event["item"].clone());
                deltas.clear();
            }
            "response.output_text.delta"
            | "response.reasoning_text.delta"
            | "response.function_call_arguments.delta" => {
                assert_eq!(index, Some(items.len() - 1));
                assert_eq!(event["item_id"], items[items.len() - 1]["id"]);
                deltas.push_str(event["delta"].as_str().expect("text"));
            }
            "response.output_text.done" | "response.reasoning_text.done" => {
                assert_eq!(event["text"], deltas);
            }
            "response.function_call_arguments.done" => assert_eq!(event["arguments"], deltas),
            "response.output_item.done" => {
                *items.last_mut().expect("an item") = event["item"].clone();
            }
            _ => {}
        }
    }
    items
}

#[tokio::test]
async fn thoughts_text_and_calls_are_items() {
    let world = Setup {
        template: Some(PARTS),
        ..Setup::default()
    }
    .build();
    let text = "hm</think>\n\nLet me.<tool_call>\n{\"name\": \"look\", \"arguments\": {\"at\": 1}}\n</tool_call>";
    let input = format!("#open 2#{}", order(&vocab::encode(text.as_bytes())));
    let tools = json!([{"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": false}]);
    let body = json!({
        "input": input, "temperature": 0, "seed": 7, "tools": tools, "include": ["message.output_text.logprobs"],
    });
    let answer = world.post_to(RESPONSES, &body).await;
    let whole = answer.expect_status(StatusCode::OK).json();
    let output = list(&whole["output"]);
    assert_eq!(output.len(), 3, "{whole}");
    assert_eq!(output[0]["type"], "reasoning");
    assert_eq!(
        output[0]["content"],
        json!([{"type": "reasoning_text", "text": "hm"}])
    );
    assert_eq!(output[1]["content"][0]["text"], "Let me.");
    let entries = list(&output[1]["content"][0]["logprobs"]);
    let spelled: String = entries
        .iter()
        .map(|entry| entry["token"].as_str().expect("text"))
        .collect();
    assert_eq!(spelled, "Let me.", "s1: the text's own entries");
    assert_eq!(output[2]["type"], "function_call");
    assert_eq!(output[2]["name"], "look");
    assert_eq!(output[2]["arguments"], "{\"at\": 1}");
    assert_eq!(whole["tools"], tools);
    assert_eq!(
        whole["usage"]["output_tokens_details"]["reasoning_tokens"],
        10
    );

    let streamed = with(body.clone(), json!({"stream": true}));
    let answer = world
        .post_to(RESPONSES, &streamed)
        .await
        .expect_status(StatusCode::OK);
    let mut collected = items(&events(&answer.body));
    let mut expected = output.clone();
    for item in collected.iter_mut().chain(&mut expected) {
        item["id"] = Value::Null;
        if item["type"] == "function_call" {
            item["call_id"] = Value::Null;
        }
    }
    assert_eq!(collected, expected);

    // Off, and forced.
    let off = json!({"reasoning": {"effort": "none"}, "tool_choice": {"type": "function", "name": "look"}, "max_output_tokens": 2000});
    let answer = world.post_to(RESPONSES, &with(body, off)).await;
    let forced = answer.expect_status(StatusCode::OK).json();
    let output = list(&forced["output"]);
    assert_eq!(output.len(), 1, "{forced}");
    assert_eq!(output[0]["name"], "look");
    let arguments = output[0]["arguments"].as_str().expect("text");
    assert!(
        serde_json::from_str::<Value>(arguments)
            .expect("JSON")
            .is_object()
    );
}

/// Items of an earlier reply go back in as they came.
#[tokio::test]
async fn earlier_items_are_the_templates_messages() {
    let world = Setup {
        template: Some(PARTS),
        ..Setup::default()
    }
    .build();
    let input = json!([
        {"role": "user", "content": "a"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "t"}]},
        {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "b"}]},
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": "{\"k\": 1}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "r"},
    ]);
    let rendered = "user:|a;assistant:t|b<tool_call>\n{\"name\": \"f\", \"arguments\": {\"k\": 1}}\n</tool_call>;tool:|r;<|go|><think>\n";
    let count = json!({"prompt": rendered, "add_special_tokens": false});
    let expected = world.post_to("/tokenize", &count).await.json()["count"].clone();
    let body = json!({"input": input, "max_output_tokens": 1});
    let answer = world
        .post_to(RESPONSES, &body)
        .await
        .expect_status(StatusCode::OK);
    assert_eq!(answer.json()["usage"]["input_tokens"], expected);
}
