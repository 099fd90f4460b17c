//! Fields of a chat request: types, ranges, limits, and what is known but not done.

use serde_json::{Value, json};

use crate::vocab;
use crate::world::{Setup, World, ask, ask_message, with};

#[tokio::test]
async fn wrong_types_and_ranges_name_their_field() {
    let world = World::new();
    let any = [json!("5"), json!(true), json!([1]), json!({"a": 1})];
    let cases: &[(&str, &[Value])] = &[
        ("model", &[json!(5), json!(true), json!([]), json!({})]),
        (
            "messages",
            &[json!(null), json!("hi"), json!({}), json!([]), json!(5)],
        ),
        (
            "max_tokens",
            &[&any[..], &[json!(1.5), json!(u64::MAX)]].concat(),
        ),
        ("max_completion_tokens", &[&any[..], &[json!(2.0)]].concat()),
        (
            "temperature",
            &[&any[..], &[json!(-0.1), json!(2.1), json!(1e300)]].concat(),
        ),
        (
            "top_p",
            &[&any[..], &[json!(0), json!(-1), json!(1.1)]].concat(),
        ),
        (
            "top_k",
            &[&any[..], &[json!(-2), json!(1.5), json!(1_u64 << 40)]].concat(),
        ),
        ("min_p", &[&any[..], &[json!(-0.1), json!(1.5)]].concat()),
        (
            "n",
            &[&any[..], &[json!(0), json!(-1), json!(129), json!(1.5)]].concat(),
        ),
        ("seed", &[&any[..], &[json!(1.5), json!(u64::MAX)]].concat()),
        (
            "stop",
            &[
                json!(5),
                json!(true),
                json!({}),
                json!(""),
                json!("x".repeat(257)),
                json!(vec!["x"; 17]),
            ],
        ),
        (
            "presence_penalty",
            &[&any[..], &[json!(-2.1), json!(2.1)]].concat(),
        ),
        (
            "frequency_penalty",
            &[&any[..], &[json!(-2.1), json!(2.1)]].concat(),
        ),
        (
            "repetition_penalty",
            &[&any[..], &[json!(0), json!(-1), json!(11)]].concat(),
        ),
        (
            "logit_bias",
            &[
                json!("5"),
                json!([1]),
                json!(true),
                json!({"x": 1}),
                json!({"5": "1"}),
                json!({"5": 101}),
                json!({"5": -101}),
                json!({"-1": 1}),
                json!({"1.5": 1}),
                json!({"05": 1}),
                json!({"5": null}),
                json!({"+5": 1}),
                json!({" 5": 1}),
            ],
        ),
        ("return_token_ids", &[json!(1), json!("true"), json!([])]),
        ("logprobs_end", &[json!(1), json!("true")]),
        ("logprobs_mode", &[json!(1), json!("cooked"), json!(true)]),
        ("stream", &[json!(1), json!("true"), json!([])]),
        (
            "chat_template_kwargs",
            &[
                json!("x"),
                json!([]),
                json!(5),
                json!({"messages": []}),
                json!({"add_generation_prompt": false}),
                json!({"a": "x".repeat(70_000)}),
            ],
        ),
        ("response_format", &[json!("text"), json!([]), json!(5)]),
    ];
    for (field, values) in cases {
        for value in *values {
            let body = with(ask("x"), json!({*field: value}));
            let message = world.check_refused(&body, field).await;
            assert!(message.contains(field), "{message}");
            assert!(message.len() < 600, "{message}");
        }
    }
    let nested: &[(Value, &str)] = &[
        (json!({"stop": ["x", ""]}), "stop[1]"),
        (json!({"stop": [null]}), "stop[0]"),
        (
            json!({"response_format": {"type": "xml"}}),
            "response_format.type",
        ),
        (json!({"response_format": {}}), "response_format.type"),
        (
            json!({"stream": true, "stream_options": 5}),
            "stream_options",
        ),
        (
            json!({"stream": true, "stream_options": {"include_usage": "yes"}}),
            "stream_options.include_usage",
        ),
        (
            json!({"stream": true, "stream_options": {"include_obfuscation": true}}),
            "stream_options.include_obfuscation",
        ),
        (json!({"messages": [5]}), "messages[0]"),
        (json!({"messages": [{}]}), "messages[0].role"),
        (
            json!({"messages": [{"role": "robot", "content": ""}]}),
            "messages[0].role",
        ),
        (json!({"messages": [{"role": 5}]}), "messages[0].role"),
        (
            json!({"messages": [{"role": "user", "content": 5}]}),
            "messages[0].content",
        ),
        (
            json!({"messages": [{"role": "user", "content": {}}]}),
            "messages[0].content",
        ),
        (
            json!({"messages": [{"role": "user", "content": ["x"]}]}),
            "messages[0].content[0]",
        ),
        (
            json!({"messages": [{"role": "user", "content": [{"text": "x"}]}]}),
            "messages[0].content[0].type",
        ),
        (
            json!({"messages": [{"role": "user", "content": [{"type": "text"}]}]}),
            "messages[0].content[0].text",
        ),
        (
            json!({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}),
            "messages[0].content[0].type",
        ),
        (
            json!({"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": [{}]}]}),
            "messages[1].tool_calls[0].id",
        ),
        (
            json!({"messages": [{"role": "user", "content": "x", "name": 5}]}),
            "messages[0].name",
        ),
    ];
    for (bad, param) in nested {
        world
            .check_refused(&with(ask("x"), bad.clone()), param)
            .await;
    }
    assert_eq!(world.engine.stats().num_steps, 0, "no work was done");
}

#[tokio::test]
async fn known_fields_that_ask_for_what_is_not_done_are_refused() {
    let world = World::new();
    let cases = [
        ("functions", json!([{"name": "f"}])),
        ("function_call", json!({"name": "f"})),
        ("guided_json", json!({})),
        ("guided_regex", json!("(")),
        ("grammar", json!("root ::= x")),
        ("audio", json!({"voice": "x"})),
        ("modalities", json!(["text", "audio"])),
        ("modalities", json!(["audio"])),
        ("prediction", json!({"type": "content", "content": "x"})),
        ("web_search_options", json!({})),
        ("verbosity", json!("low")),
        ("chat_template", json!("{{ messages }}")),
        ("best_of", json!(2)),
        ("ignore_eos", json!(true)),
    ];
    for (field, value) in cases {
        let message = world
            .check_refused(&with(ask("x"), json!({field: value})), field)
            .await;
        assert!(
            message.contains(field) && message.contains("not supported"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn r16_harmless_fields_are_accepted_and_unknown_ones_listed() {
    let world = World::new();
    let harmless = json!({
        "store": true, "metadata": {"a": "b"}, "user": "someone", "service_tier": "auto",
        "parallel_tool_calls": true, "safety_identifier": "x", "prompt_cache_key": "x",
        "reasoning_effort": "low", "tools": [], "tool_choice": "none", "functions": [],
        "response_format": {"type": "text"}, "modalities": ["text"], "logit_bias": {},
        "stop": [], "n": 1, "top_k": -1, "stream_options": null, "model": null,
    });
    let answer = world.post(&with(ask("fine"), harmless)).await;
    assert_eq!(answer.json()["choices"][0]["message"]["content"], "fine");
    assert_eq!(answer.header("x-assay-ignored"), None);

    let vendor = json!({"vendor_field": 1, "a\nb": 2, "messages": [
        {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {}}], "weight": 1},
    ]});
    let answer = world
        .post(&with(with(ask("x"), vendor), json!({"max_tokens": 1})))
        .await;
    let ignored = answer.header("x-assay-ignored").expect("listed");
    let mut listed: Vec<_> = ignored.split(", ").collect();
    listed.sort_unstable();
    assert_eq!(
        listed,
        [
            "a?b",
            "messages[0].content[0].cache_control",
            "messages[0].weight",
            "vendor_field"
        ]
    );

    let many: Value = (0..500)
        .map(|n| (format!("unknown_{n}"), json!(n)))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let answer = world
        .post(&with(ask("x"), many))
        .await
        .expect_status(axum::http::StatusCode::OK);
    let ignored = answer.header("x-assay-ignored").expect("listed");
    assert!(
        ignored.len() < 1_100 && ignored.ends_with(", ..."),
        "{ignored}"
    );
}

#[tokio::test]
async fn fault_115_fault_119_fault_123_biases_of_no_token_never_reach_the_engine() {
    let world = World::new();
    let last = vocab::size() - 1;
    world
        .reply(&with(
            ask("x"),
            json!({"logit_bias": {last.to_string(): 1}}),
        ))
        .await;
    for id in [
        (last + 1).to_string(),
        "999999".to_owned(),
        "4294967295".to_owned(),
        "99999999999".to_owned(),
    ] {
        world
            .check_refused(
                &with(ask("x"), json!({"logit_bias": {id: 1}})),
                "logit_bias",
            )
            .await;
    }
}

#[tokio::test]
async fn fault_118_fault_125_biases_are_real_numbers_and_reach_special_tokens() {
    let world = World::new();
    // Forced at 12 with the background below 8: the end token is barred, so the reply runs to its limit.
    let barred = json!({"logit_bias": {vocab::END.to_string(): -100}, "max_tokens": 9});
    let reply = world.reply(&with(ask("ab"), barred)).await;
    assert_eq!(reply["choices"][0]["finish_reason"], "length");
    // Among equals half a point decides.
    let nudged =
        json!({"logit_bias": {"7": 0.5, "8": 0.25}, "max_tokens": 2, "return_token_ids": true});
    let reply = world.reply(&with(ask_message("#flat 20#"), nudged)).await;
    assert_eq!(reply["choices"][0]["token_ids"], json!([7, 7]));
}

#[tokio::test]
async fn fault_170_conversations_of_every_shape() {
    let world = World::new();
    let order = crate::world::order(&[256]);
    let messages = json!([
        {"role": "system", "content": "be kind"},
        {"role": "developer", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "name": "ann"},
        {"role": "assistant", "content": null, "tool_calls": [], "refusal": null, "annotations": [], "audio": null},
        {"role": "tool", "content": "t", "tool_call_id": "c1"},
        {"role": "user", "content": order},
    ]);
    let body = with(
        ask("x"),
        json!({"messages": messages, "return_token_ids": true}),
    );
    let reply = world.reply(&body).await;
    assert_eq!(reply["choices"][0]["message"]["content"], "Hello");
    let ids = reply["choices"][0]["prompt_token_ids"]
        .as_array()
        .expect("ids")
        .iter();
    let prompt: Vec<u8> = ids
        .flat_map(|id| vocab::bytes(u32::try_from(id.as_u64().expect("an id")).expect("small")))
        .collect();
    let expected = format!(
        "system: be kind\nsystem: be brief\nuser: a\nb\nassistant: \ntool: t\nuser: {order}\n"
    );
    assert_eq!(String::from_utf8(prompt).expect("text"), expected);

    let kwargs = with(body, json!({"chat_template_kwargs": {"shout": "HEY"}}));
    let ids = world.reply(&kwargs).await["choices"][0]["prompt_token_ids"]
        .as_array()
        .expect("ids")
        .len();
    assert_eq!(ids, expected.len() + "HEY".len() + 1);
}

#[tokio::test]
async fn a_model_without_a_template_is_no_chat_model() {
    let world = Setup {
        template: None,
        ..Setup::default()
    }
    .build();
    let message = world.check_refused(&ask("x"), "model").await;
    assert!(message.contains("template"), "{message}");
}

#[tokio::test]
async fn a_template_may_refuse_the_messages() {
    let world = Setup {
        template: Some("{{ raise_exception('roles must alternate') }}"),
        ..Setup::default()
    }
    .build();
    let message = world.check_refused(&ask("x"), "messages").await;
    assert!(message.contains("roles must alternate"), "{message}");
}
