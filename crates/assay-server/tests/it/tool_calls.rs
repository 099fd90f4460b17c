//! Calls of tools: read from the reply in the model's own way to write them, and enforced where they are forced.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::scored::scored;
use crate::stream::check_streams_alike;
use crate::vocab;
use crate::world::{Setup, World, ask, ask_message, order, with};

pub(crate) const HERMES: &str = "{% for tool in tools or [] %}<{{ tool.function.name }}>{% endfor %}\
    {% for message in messages %}{{ message.content }}{% for call in message.tool_calls or [] %}<tool_call>\n\
    {\"name\": \"{{ call.function.name }}\", \"arguments\": {{ call.function.arguments | tojson }}}\n</tool_call>\
    {% endfor %}{% endfor %}{% if add_generation_prompt %}<|go|>{% endif %}";
const XML: &str = "{% for tool in tools or [] %}<{{ tool.function.name }}>{% endfor %}\
    {% for message in messages %}{{ message.content }}{% for call in message.tool_calls or [] %}<tool_call>\n\
    <function={{ call.function.name }}>\n{% for name, value in call.function.arguments | items %}<parameter={{ name }}>\n\
    {{ value }}\n</parameter>\n{% endfor %}</function>\n</tool_call>{% endfor %}{% endfor %}\
    {% if add_generation_prompt %}<|go|>{% endif %}";
const LLAMA: &str = "{% for tool in tools or [] %}<{{ tool.function.name }}>{% endfor %}\
    {% for message in messages %}{% if message.tool_calls %}<|go|>{\"name\": \"{{ message.tool_calls[0].function.name }}\", \
    \"parameters\": {{ message.tool_calls[0].function.arguments | tojson }}}{% else %}{{ message.content }}{% endif %}\
    {% endfor %}{% if add_generation_prompt %}<|go|>{% endif %}";

fn world(template: &'static str) -> World {
    Setup {
        template: Some(template),
        ..Setup::default()
    }
    .build()
}

pub(crate) fn tools() -> Value {
    let tool = |name: &str, parameters: Value| json!({"type": "function", "function": {"name": name, "parameters": parameters}});
    json!([
        tool(
            "weather",
            json!({
                "type": "object",
                "properties": {
                    "city": {"type": "string", "enum": ["Zürich", "Paris"]},
                    "days": {"type": "integer", "minimum": 1, "maximum": 3},
                },
                "required": ["city", "days"],
                "additionalProperties": false,
            })
        ),
        tool(
            "stop",
            json!({"type": "object", "properties": {}, "additionalProperties": false})
        ),
    ])
}

/// A request for exactly `text` that tells of the tools.
fn ask_with_tools(text: &str) -> Value {
    with(ask(text), json!({"tools": tools()}))
}

/// Name and arguments of each call.
fn calls(reply: &Value) -> Vec<(String, String)> {
    let calls = reply["choices"][0]["message"]["tool_calls"].as_array();
    let calls = calls.into_iter().flatten().map(|call| {
        assert_eq!(call["type"], "function");
        let text = |name: &str| call["function"][name].as_str().expect("text").to_owned();
        (text("name"), text("arguments"))
    });
    calls.collect()
}

#[tokio::test]
async fn s8_fault_70_fault_71_calls_are_told_apart_in_every_format() {
    let paris = "{\"city\": \"Paris\", \"days\": 2}";
    let pair = |name: &str, arguments: &str| (name.to_owned(), arguments.to_owned());
    let cases = [
        (
            HERMES,
            format!("Looking.\n<tool_call>\n{{\"name\": \"weather\", \"arguments\": {paris}}}\n</tool_call>\n\
                <tool_call>\n{{\"name\": \"stop\", \"arguments\": {{}}}}\n</tool_call>"),
            json!("Looking.\n"),
            vec![pair("weather", paris), pair("stop", "{}")],
        ),
        (
            XML,
            "<tool_call>\n<function=weather>\n<parameter=city>\nParis\n</parameter>\n<parameter=days>\n2\n</parameter>\n\
             </function>\n</tool_call>\n<tool_call>\n<function=stop>\n</function>\n</tool_call>".to_owned(),
            Value::Null,
            vec![pair("weather", paris), pair("stop", "{}")],
        ),
        (
            LLAMA,
            format!("{{\"name\": \"weather\", \"parameters\": {paris}}}"),
            Value::Null,
            vec![pair("weather", paris)],
        ),
    ];
    for (template, text, content, expected) in cases {
        let world = world(template);
        let plain = check_streams_alike(&world, &ask_with_tools(&text)).await;
        let body = scored(ask_with_tools(&text), 1);
        let reply = check_streams_alike(&world, &body).await;
        let choice = &reply["choices"][0];
        assert_eq!(plain["choices"][0]["message"], choice["message"], "v4");
        assert_eq!(choice["message"]["content"], content, "{text}");
        assert_eq!(calls(&reply), expected, "{text}");
        assert_eq!(choice["finish_reason"], "tool_calls");
        assert_eq!(choice["logprobs"].get("tool_calls"), None, "not asked for");
        let spelled = |reply: &Value, list: &str| -> String {
            let entries = reply["choices"][0]["logprobs"][list]
                .as_array()
                .expect("entries");
            let tokens = entries
                .iter()
                .map(|entry| entry["token"].as_str().expect("text"));
            tokens.collect()
        };
        assert_eq!(spelled(&reply, "content"), content.as_str().unwrap_or(""));

        let reply =
            check_streams_alike(&world, &with(body, json!({"logprobs_tool_calls": true}))).await;
        let raw = spelled(&reply, "tool_calls");
        assert!(!raw.contains("tool_call>"), "tags are in no list: {raw}");
        let expected: String = text.split("Looking.\n").collect();
        let expected = expected
            .replace("</tool_call>\n", "")
            .replace("</tool_call>", "")
            .replace("<tool_call>", "");
        assert_eq!(raw, expected, "what the model wrote as calls");
    }
}

#[tokio::test]
async fn what_is_no_call_is_content() {
    let world = world(HERMES);
    for text in [
        "<tool_call>\nno JSON\n</tool_call>",
        "<tool_call>{\"name\": 1}</tool_call>",
        "a <tool_",
        "{\"name\": \"weather\", \"arguments\": {}}",
    ] {
        let reply = check_streams_alike(&world, &scored(ask_with_tools(text), 0)).await;
        let choice = &reply["choices"][0];
        assert_eq!(choice["message"]["content"], text);
        assert_eq!(choice["message"].get("tool_calls"), None);
        assert_eq!(choice["finish_reason"], "stop");
    }
    // Without tools, or with none to be called, tags are text.
    let text = "<tool_call>\n{\"name\": \"stop\", \"arguments\": {}}\n</tool_call>";
    for body in [
        ask(text),
        with(ask_with_tools(text), json!({"tool_choice": "none"})),
    ] {
        let reply = check_streams_alike(&world, &body).await;
        assert_eq!(reply["choices"][0]["message"]["content"], text);
        assert_eq!(reply["choices"][0]["finish_reason"], "stop");
    }
}

#[tokio::test]
async fn a_call_that_is_cut_is_what_there_is() {
    let world = world(HERMES);
    let text = "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Zü";
    let body = with(
        ask_with_tools(&format!("{text}rich")),
        json!({"max_tokens": text.len() - 1}),
    );
    let reply = check_streams_alike(&world, &body).await;
    assert_eq!(
        calls(&reply),
        [("weather".to_owned(), "{\"city\": \"Z".to_owned())]
    );
    assert_eq!(reply["choices"][0]["finish_reason"], "length");
}

#[tokio::test]
async fn one_call_at_most_ends_the_reply() {
    let world = world(HERMES);
    let call = "<tool_call>\n{\"name\": \"stop\", \"arguments\": {}}\n</tool_call>";
    let body = with(
        ask_with_tools(&format!("{call}\n{call}")),
        json!({"parallel_tool_calls": false}),
    );
    let reply = check_streams_alike(&world, &body).await;
    assert_eq!(calls(&reply).len(), 1);
    assert_eq!(reply["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(reply["usage"]["completion_tokens"], call.len() + 1);
}

/// The model would rather write text: the mask leaves it nothing but calls with valid arguments.
#[tokio::test]
async fn r5_forced_calls_are_calls_with_valid_arguments() {
    let named = |name: &str| json!({"type": "function", "function": {"name": name}});
    for template in [HERMES, XML, LLAMA] {
        let world = world(template);
        for (choice, expected) in [
            (json!("required"), None),
            (named("weather"), Some("weather")),
            (named("stop"), Some("stop")),
        ] {
            for parallel in [true, false] {
                let more = json!({"tool_choice": choice, "parallel_tool_calls": parallel, "max_tokens": 3000});
                let body = with(scored(ask_with_tools("I will not call."), 1), more);
                let reply = check_streams_alike(&world, &body).await;
                let calls = calls(&reply);
                assert!(!calls.is_empty(), "{reply}");
                assert!(
                    calls.len() == 1 || (parallel && expected.is_none()),
                    "{calls:?}"
                );
                assert_eq!(
                    reply["choices"][0]["finish_reason"], "tool_calls",
                    "{choice}"
                );
                assert_eq!(reply["choices"][0]["message"]["content"], Value::Null);
                for (name, arguments) in calls {
                    let arguments: Value = serde_json::from_str(&arguments).expect("JSON");
                    match name.as_str() {
                        "weather" => {
                            assert!(
                                ["Zürich", "Paris"]
                                    .contains(&arguments["city"].as_str().expect("text"))
                            );
                            assert!(
                                (1..=3).contains(&arguments["days"].as_i64().expect("an integer"))
                            );
                        }
                        "stop" => assert_eq!(arguments, json!({})),
                        other => panic!("no tool is called {other}"),
                    }
                    assert!(expected.is_none_or(|expected| expected == name));
                }
            }
        }
    }
}

/// A form of the content holds for the content; a call may come instead.
#[tokio::test]
async fn a_form_beside_tools_holds_for_content_and_arguments() {
    let world = world(HERMES);
    let form = json!({"max_tokens": 3000, "response_format": {"type": "json_schema",
        "json_schema": {"name": "n", "schema": {"enum": [{"a": 1}]}}}});
    let body = with(ask_with_tools("{\"a\": 1}"), form.clone());
    let reply = check_streams_alike(&world, &body).await;
    assert_eq!(reply["choices"][0]["message"]["content"], "{\"a\": 1}");
    let text =
        "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}\n</tool_call>";
    let reply = check_streams_alike(&world, &with(ask_with_tools(text), form)).await;
    let calls = calls(&reply);
    let arguments: Value = serde_json::from_str(&calls[0].1).expect("JSON");
    assert!(
        ["Zürich", "Paris"].contains(&arguments["city"].as_str().expect("text")),
        "{arguments}"
    );
}

#[tokio::test]
async fn what_cannot_be_enforced_is_refused_by_its_path() {
    let one = |parameters: Value| json!([{"type": "function", "function": {"name": "f", "parameters": parameters}}]);
    let required =
        |tools: Value| with(ask("x"), json!({"tools": tools, "tool_choice": "required"}));
    let hermes = world(HERMES);
    let bad = one(json!({"type": "object", "properties": {"a": {"not": {}}}}));
    hermes
        .check_refused(&required(bad), "tools[0].function.parameters.properties.a")
        .await;
    let xml = world(XML);
    for (parameters, path) in [
        (
            json!({"type": "object", "minProperties": 1}),
            "minProperties",
        ),
        (
            json!({"properties": {"a": {"type": "string", "pattern": "x"}}}),
            "properties.a.pattern",
        ),
        (
            json!({"properties": {"a": {"type": "array", "contains": {}}}}),
            "properties.a",
        ),
        (json!({"properties": {}, "required": ["a"]}), "required"),
    ] {
        let path = format!("tools[0].function.parameters.{path}");
        xml.check_refused(&required(one(parameters)), &path).await;
    }
    let strict = json!([{"type": "function", "function": {"name": "f", "strict": true}}]);
    let body = with(ask("x"), json!({"tools": strict}));
    world(LLAMA)
        .check_refused(&body, "tools[0].function.strict")
        .await;
    for (choice, param) in [
        (
            json!({"type": "function", "function": {"name": "g"}}),
            "tool_choice",
        ),
        (json!({"type": "custom"}), "tool_choice.type"),
        (
            json!({"type": "function", "function": {}}),
            "tool_choice.function.name",
        ),
    ] {
        let body = with(ask_with_tools("x"), json!({"tool_choice": choice}));
        hermes.check_refused(&body, param).await;
    }
    let body = with(ask("x"), json!({"tool_choice": "required"}));
    hermes.check_refused(&body, "tool_choice").await;
    let regex = json!({"structured_outputs": {"regex": "a+"}});
    hermes
        .check_refused(
            &with(ask_with_tools("x"), regex),
            "structured_outputs.regex",
        )
        .await;
}

/// What a reply said comes back in the next request, in the form that the template reads.
#[tokio::test]
async fn earlier_calls_are_rendered() {
    let world = world(HERMES);
    let messages = json!([
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\": \"Zürich\"}"}},
        ]},
        {"role": "tool", "tool_call_id": "call_1", "content": "sun"},
    ]);
    let answer = world
        .post_to("/apply-template", &json!({"messages": messages}))
        .await
        .expect_status(StatusCode::OK);
    assert_eq!(
        answer.json()["prompt"],
        "a<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Zürich\"}}\n</tool_call>sun<|go|>"
    );
    for (call, path) in [
        (json!({}), "id"),
        (json!({"id": "x", "type": "custom"}), "type"),
        (
            json!({"id": "x", "function": {"name": "f", "arguments": {}}}),
            "function.arguments",
        ),
    ] {
        let messages = json!([{"role": "assistant", "tool_calls": [call]}]);
        let body = json!({"messages": messages});
        world
            .check_refused(&body, &format!("messages[0].tool_calls[0].{path}"))
            .await;
    }
}

/// A named call of one choice never mixes with another's.
#[tokio::test]
async fn choices_have_their_own_calls() {
    let world = world(HERMES);
    let text = "<tool_call>\n{\"name\": \"stop\", \"arguments\": {}}\n</tool_call>";
    let ids = vocab::encode(text.as_bytes());
    let body = with(ask_message(&order(&ids)), json!({"tools": tools(), "n": 3}));
    let reply = check_streams_alike(&world, &body).await;
    for choice in reply["choices"].as_array().expect("choices") {
        assert_eq!(
            choice["message"]["tool_calls"][0]["function"]["name"],
            "stop"
        );
    }
}

/// A strict tool's arguments are valid where the model may call it and does; text stays free.
#[tokio::test]
async fn a_strict_tool_is_strict_where_calls_are_free() {
    let mut strict = tools();
    strict[0]["function"]["strict"] = json!(true);
    let wanted = "{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}";
    let hermes = format!("Wait.\n<tool_call>\n{wanted}\n</tool_call> and <tool_call>\n{wanted}");
    let xml = "Wait.\n<tool_call>\n<function=weather>\n<parameter=city>\nRome\n</parameter>\n</function>\n</tool_call> and <tool_call>".to_owned();
    for (template, text) in [(HERMES, hermes), (XML, xml)] {
        let world = world(template);
        let more = json!({"tools": strict, "max_tokens": 3000});
        let reply = check_streams_alike(&world, &with(scored(ask(&text), 1), more.clone())).await;
        let content = reply["choices"][0]["message"]["content"].as_str();
        assert!(
            content.is_some_and(|content| content.starts_with("Wait.\n")),
            "{reply}"
        );
        let calls = calls(&reply);
        assert!(!calls.is_empty(), "{reply}");
        for (name, arguments) in calls {
            let arguments: Value = serde_json::from_str(&arguments).expect("JSON");
            if name == "weather" {
                let city = arguments["city"].as_str().expect("text");
                assert!(["Zürich", "Paris"].contains(&city), "{arguments}");
                assert!(arguments["days"].is_i64(), "{arguments}");
            } else {
                assert_eq!(arguments, json!({}), "{name}");
            }
        }
        // A piece over the edge of the tag would hide the begin of a call from the mask.
        let over_the_edge = [vocab::encode(b"a<tool_c"), vec![256 + 20]].concat();
        let body = with(ask_message(&order(&over_the_edge)), more.clone());
        let reply = check_streams_alike(&world, &body).await;
        let ids = with(body, json!({"return_token_ids": true}));
        let ids = world.reply(&ids).await["choices"][0]["token_ids"].clone();
        assert!(
            !ids.as_array().expect("ids").contains(&json!(256 + 20)),
            "{reply}"
        );
    }
}
