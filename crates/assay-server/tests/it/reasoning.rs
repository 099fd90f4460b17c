//! Replies of models that think: two texts with a list of entries each, over HTTP.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::scored::scored;
use crate::stream::check_streams_alike;
use crate::vocab::{self, END_THINK, STRADDLE, THINK};
use crate::world::{Setup, World, ask_ids, ask_message, order, with};

/// The model opens its reasoning by itself (Qwen 3), unless it is told not to think.
const OPENS: &str = "{% for message in messages %}{{ message['content'] }}{% endfor %}\
    {% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}<|go|>";
/// The template opens it (DeepSeek R1), unless it is told not to think.
pub(crate) const OPENED: &str = "{% for message in messages %}{{ message['content'] }}{% endfor %}<|go|>\
    {% if enable_thinking is defined and enable_thinking is false %}<think></think>{% else %}<think>\n{% endif %}";

fn world(template: &'static str) -> World {
    Setup {
        template: Some(template),
        ..Setup::default()
    }
    .build()
}

/// A request for exactly these tokens after a prompt that opens the reasoning: two tokens, or two others.
pub(crate) fn ask_opened(ids: &[u32]) -> Value {
    ask_message(&format!("#open 2#{}", order(ids)))
}

fn bytes(text: &str) -> Vec<u32> {
    vocab::encode(text.as_bytes())
}

fn tokens(reply: &Value, field: &str) -> Vec<String> {
    let entries = reply["choices"][0]["logprobs"][field].as_array();
    entries
        .expect("entries")
        .iter()
        .map(|entry| entry["token"].as_str().expect("text").to_owned())
        .collect()
}

#[tokio::test]
async fn s5_s8_fault_67_fault_69_reasoning_and_content_have_their_own_entries() {
    let ids = [bytes("so"), vec![STRADDLE], bytes(" 4")].concat();
    let (opened, opens) = (world(OPENED), world(OPENS));
    let by_model = [vec![THINK], bytes("\n"), ids.clone()].concat();
    for (world, body, num_reasoning) in [
        (&opened, ask_opened(&ids), 3),
        (&opens, ask_ids(&by_model), 5),
    ] {
        let reply = check_streams_alike(world, &scored(body, 2)).await;
        let choice = &reply["choices"][0];
        assert_eq!(choice["message"]["reasoning_content"], "so it");
        assert_eq!(choice["message"]["content"], "is 4");
        assert_eq!(choice["finish_reason"], "stop");
        assert_eq!(tokens(&reply, "reasoning_content"), ["s", "o", " it"]);
        assert_eq!(tokens(&reply, "content"), ["is", " ", "4"]);
        let logprobs = &choice["logprobs"];
        let (cut, rest) = (&logprobs["reasoning_content"][2], &logprobs["content"][0]);
        assert_eq!(cut["token_id"], STRADDLE);
        assert_eq!(rest["token_id"], STRADDLE);
        assert!(cut["logprob"].as_f64().expect("a number") < 0.0);
        assert_eq!(rest["logprob"].as_f64().expect("a number").to_bits(), 0);
        assert_eq!(rest["top_logprobs"], json!([]));
        assert_eq!(cut["bytes"], json!(b" it"));
        assert_eq!(rest["bytes"], json!(b"is"));
        // Each token once, tags and separators never.
        let expected = [bytes("so"), vec![STRADDLE], bytes(" 4")].concat();
        assert_eq!(choice["token_ids"], json!(expected));
        let details = &reply["usage"]["completion_tokens_details"];
        assert_eq!(details["reasoning_tokens"], num_reasoning);
    }
}

#[tokio::test]
async fn s8_all_output_was_reasoning() {
    let world = world(OPENED);
    for (ids, reason) in [
        (bytes("hm"), "stop"),
        ([bytes("hm"), vec![END_THINK], bytes("\n")].concat(), "stop"),
        (bytes("hm and on"), "length"),
    ] {
        let body = scored(ask_opened(&ids), 0);
        let body = if reason == "length" {
            with(body, json!({"max_tokens": 2}))
        } else {
            body
        };
        let reply = check_streams_alike(&world, &body).await;
        let choice = &reply["choices"][0];
        assert_eq!(choice["message"]["content"], Value::Null, "{choice}");
        assert_eq!(choice["message"]["reasoning_content"], "hm");
        assert_eq!(choice["logprobs"]["content"], json!([]));
        assert_eq!(tokens(&reply, "reasoning_content"), ["h", "m"]);
        assert_eq!(choice["finish_reason"], reason);
    }
}

/// The worked value: where the one entry of a one-token reply stands.
#[tokio::test]
async fn a_one_token_reply_is_reasoning_unless_thinking_is_off() {
    let world = world(OPENED);
    let body = with(scored(ask_opened(&[256]), 3), json!({"max_tokens": 1}));
    let on = check_streams_alike(&world, &body).await;
    assert_eq!(tokens(&on, "reasoning_content"), ["Hello"]);
    assert_eq!(tokens(&on, "content"), [""; 0]);
    for off in [
        json!({"chat_template_kwargs": {"enable_thinking": false}}),
        json!({"reasoning_effort": "none"}),
    ] {
        let reply = check_streams_alike(&world, &with(body.clone(), off.clone())).await;
        assert_eq!(tokens(&reply, "content"), ["Hello"], "{off}");
        let logprobs = &reply["choices"][0]["logprobs"];
        assert_eq!(logprobs.get("reasoning_content"), None, "{off}");
        assert_eq!(reply["choices"][0]["message"]["content"], "Hello");
    }
    // A hint is the template's to read; a word that is none is refused.
    world
        .reply(&with(body.clone(), json!({"reasoning_effort": "low"})))
        .await;
    let bad = with(body, json!({"reasoning_effort": "much"}));
    world.check_refused(&bad, "reasoning_effort").await;
}

#[tokio::test]
async fn fault_37_a_reply_without_tags_has_its_entries() {
    let world = world(OPENS);
    let reply = check_streams_alike(&world, &scored(ask_ids(&bytes("plain")), 1)).await;
    assert_eq!(tokens(&reply, "content"), ["p", "l", "a", "i", "n"]);
    assert_eq!(tokens(&reply, "reasoning_content"), [""; 0]);
    let message = &reply["choices"][0]["message"];
    assert_eq!(message.get("reasoning_content"), None);
}

#[tokio::test]
async fn a_budget_closes_the_reasoning_and_what_is_forced_has_its_raw_score() {
    let (opened, opens) = (world(OPENED), world(OPENS));
    let thought = bytes("thinking and thinking");
    let by_model = [vec![THINK], thought.clone()].concat();
    for budget in [0_usize, 1, 4] {
        for (world, body) in [
            (&opened, ask_opened(&thought)),
            (&opens, ask_ids(&by_model)),
        ] {
            let limits = json!({"thinking_token_budget": budget, "max_tokens": budget + 4});
            let reply = check_streams_alike(world, &with(scored(body, 0), limits)).await;
            let entries = tokens(&reply, "reasoning_content");
            assert_eq!(entries.concat(), "thinking and"[..budget], "{budget}");
            assert!(
                !tokens(&reply, "content").is_empty(),
                "{budget}: the model went on"
            );
            let details = &reply["usage"]["completion_tokens_details"];
            let num_tags = if std::ptr::eq(world, &opens) { 2 } else { 1 };
            assert_eq!(details["reasoning_tokens"], budget + num_tags);
        }
    }
    let bad = with(ask_opened(&[]), json!({"thinking_token_budget": -1}));
    opened.check_refused(&bad, "thinking_token_budget").await;
}

/// A mask begins after the reasoning; the values stay raw (V7).
#[tokio::test]
async fn structured_output_begins_after_the_reasoning() {
    let (opened, opens) = (world(OPENED), world(OPENS));
    let form = json!({"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"enum": [{"a": 1}]}}}});
    // The model would rather go on with text, end within its thoughts, or begin the content in the closing token.
    let wishes = [
        [bytes("no {json} here"), vec![END_THINK], bytes("text")].concat(),
        [bytes("hm"), vec![END_THINK, 256 + 5], bytes("text")].concat(),
        [bytes("hm</thin"), vec![256 + 18], bytes("text")].concat(),
    ];
    for ids in wishes {
        let by_model = [vec![THINK], ids.clone()].concat();
        for (world, body) in [(&opened, ask_opened(&ids)), (&opens, ask_ids(&by_model))] {
            let limits = json!({"max_tokens": 600, "thinking_token_budget": 40});
            let body = with(with(scored(body, 1), form.clone()), limits);
            let reply = check_streams_alike(world, &body).await;
            let choice = &reply["choices"][0];
            let content = choice["message"]["content"].as_str().expect("content");
            let value: Value = serde_json::from_str(content).expect("JSON");
            assert_eq!(value, json!({"a": 1}), "{choice}");
            assert_eq!(choice["finish_reason"], "stop");
            let entries = choice["logprobs"]["content"].as_array().expect("entries");
            let unlikely = entries.iter().filter(|entry| {
                entry["logprob"].as_f64() < entry["top_logprobs"][0]["logprob"].as_f64()
            });
            assert!(
                unlikely.count() > 0,
                "raw values do not see the mask: {choice}"
            );
        }
    }
    // A model that does not think answers at once.
    let body = with(ask_ids(&bytes("{\"a\": 1} text")), form);
    let reply = check_streams_alike(&opens, &with(body, json!({"max_tokens": 600}))).await;
    let content = reply["choices"][0]["message"]["content"].as_str();
    let value: Value = serde_json::from_str(content.expect("content")).expect("JSON");
    assert_eq!(value, json!({"a": 1}));
}

#[tokio::test]
async fn stop_strings_end_the_content_alone() {
    let world = world(OPENED);
    let ids = [bytes("STOP it"), vec![END_THINK], bytes("\n\na STOP b")].concat();
    let body = with(scored(ask_opened(&ids), 0), json!({"stop": "STOP"}));
    let reply = check_streams_alike(&world, &body).await;
    let choice = &reply["choices"][0];
    assert_eq!(choice["message"]["reasoning_content"], "STOP it");
    assert_eq!(choice["message"]["content"], "a ");
    assert_eq!(choice["stop_reason"], "STOP");
}

#[tokio::test]
async fn earlier_thoughts_are_the_templates_to_keep() {
    let world = world(
        "{% for message in messages %}{{ message.reasoning_content }}|{{ message.content }};{% endfor %}<|go|>",
    );
    let messages = json!([
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b", "reasoning_content": "t"},
        {"role": "user", "content": "c"},
    ]);
    let answer = world
        .post_to("/apply-template", &json!({"messages": messages}))
        .await
        .expect_status(StatusCode::OK);
    assert_eq!(answer.json()["prompt"], "|a;t|b;|c;<|go|>");
    let bad = json!({"messages": [{"role": "user", "content": "a", "reasoning_content": "t"}]});
    world
        .check_refused(&bad, "messages[0].reasoning_content")
        .await;
}
