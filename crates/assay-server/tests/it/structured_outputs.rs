//! `structured_outputs`: row N7 on chat and completions, scores of forced tokens (V7), and what is refused.

use serde_json::{Value, json};

use crate::completions::{check_completion, complete_prompt};
use crate::scored::{entries, scored};
use crate::stream::check_streams_alike;
use crate::values::log_softmax;
use crate::world::{CHAT, COMPLETIONS, World, ask, ask_message, script, with};

/// A constraint, and whether a text follows it.
type Case = (Value, fn(&str) -> bool);

fn cases() -> Vec<Case> {
    let schema = json!({
        "type": "object", "properties": {"n": {"enum": [1, 22, 333]}},
        "required": ["n"], "additionalProperties": false,
    });
    let is_valid = |text: &str| {
        let value: Value = serde_json::from_str(text).expect("JSON");
        let n = value["n"].as_u64();
        value.as_object().is_some_and(|members| members.len() == 1)
            && [1, 22, 333].iter().any(|one| n == Some(*one))
    };
    vec![
        (json!({"choice": ["yes", "no", "größer", "11"]}), |text| {
            ["yes", "no", "größer", "11"].contains(&text)
        }),
        (json!({"regex": "[0-9]{3}(-[a-f]{2})?"}), |text| {
            let (digits, rest) = text.split_at(3);
            digits.bytes().all(|byte| byte.is_ascii_digit()) && (rest.is_empty() || rest.len() == 3)
        }),
        (
            json!({"grammar": "start: \"yes\" | \"no\" \" way\""}),
            |text| ["yes", "no way"].contains(&text),
        ),
        (json!({"json": schema}), is_valid),
        (json!({"json": schema.to_string()}), is_valid),
    ]
}

#[tokio::test]
async fn n7_v7_replies_follow_their_constraint_and_report_raw_values() {
    let world = World::new();
    for (constraint, follows) in cases() {
        for seed in 0..4 {
            let more = json!({
                "structured_outputs": constraint, "temperature": 1, "seed": seed, "max_tokens": 40,
            });
            let body = scored(with(ask_message("free"), more.clone()), 2);
            let reply = check_streams_alike(&world, &body).await;
            let choice = &reply["choices"][0];
            let content = choice["message"]["content"].as_str().expect("text");
            assert!(follows(content), "{constraint}: {content:?}");
            assert_eq!(choice["finish_reason"], "stop");
            let mut history: Vec<u32> =
                serde_json::from_value(choice["prompt_token_ids"].clone()).expect("ids");
            for entry in entries(&reply) {
                let id = entry["token_id"].as_u64().expect("an id");
                let reference = log_softmax(&script(&history));
                let raw = reference[usize::try_from(id).expect("small")];
                let error = entry["logprob"].as_f64().expect("finite") - raw;
                assert!(error.abs() < 1e-12, "v7: {entry}");
                history.push(u32::try_from(id).expect("small"));
            }

            let body = with(complete_prompt(&json!("free")), more);
            let body = with(body, json!({"logprobs": 1, "n": 2}));
            let reply = check_completion(&world, &body).await;
            for choice in reply["choices"].as_array().expect("choices") {
                let text = choice["text"].as_str().expect("text");
                assert!(follows(text), "{constraint}: {text:?}");
            }
        }
    }
}

#[tokio::test]
async fn n7_fault_127_fault_143_fault_151_what_cannot_be_enforced_is_refused_before_any_work() {
    let world = World::new();
    let cases = [
        (json!({}), "structured_outputs"),
        (json!({"choice": ["a"], "regex": "b"}), "structured_outputs"),
        (json!("choice"), "structured_outputs"),
        (json!({"regex": "("}), "structured_outputs.regex"),
        (json!({"regex": "*a"}), "structured_outputs.regex"),
        (json!({"regex": ""}), "structured_outputs.regex"),
        (json!({"regex": 5}), "structured_outputs.regex"),
        (json!({"choice": []}), "structured_outputs.choice"),
        (json!({"choice": [5]}), "structured_outputs.choice[0]"),
        (json!({"choice": "a"}), "structured_outputs.choice"),
        (json!({"grammar": "start: ("}), "structured_outputs.grammar"),
        (
            json!({"grammar": "root ::= \"x\""}),
            "structured_outputs.grammar",
        ),
        (
            json!({"grammar": "start: \"x\" loop\nloop: \"y\" loop"}),
            "structured_outputs.grammar",
        ),
        (json!({"json": 5}), "structured_outputs.json"),
        (json!({"json": "{"}), "structured_outputs.json"),
        (json!({"json": "5"}), "structured_outputs.json"),
        (
            json!({"json": {"type": "object", "properties": {"a": {"not": {"type": "string"}}}}}),
            "structured_outputs.json.properties.a",
        ),
        (
            json!({"choice": ["a"], "whitespace_pattern": " "}),
            "structured_outputs.whitespace_pattern",
        ),
    ];
    for (constraint, param) in cases {
        for (route, body) in [
            (CHAT, ask("x")),
            (COMPLETIONS, complete_prompt(&json!("x"))),
        ] {
            for stream in [false, true] {
                let more = json!({"structured_outputs": constraint, "stream": stream});
                world
                    .check_refused_by(route, &with(body.clone(), more), param)
                    .await;
            }
        }
    }
    let broken = json!({"structured_outputs": {"json": "{"}});
    let message = world
        .check_refused(&with(ask("x"), broken), "structured_outputs.json")
        .await;
    assert!(
        message.contains("the text in this string is not valid JSON"),
        "{message}"
    );
    let both = json!({
        "structured_outputs": {"choice": ["a"]}, "response_format": {"type": "json_object"},
    });
    let message = world
        .check_refused(&with(ask("x"), both), "structured_outputs")
        .await;
    assert!(message.contains("response_format"), "{message}");
    assert_eq!(world.engine.stats().num_steps, 0, "no work was done");
}

/// What cannot be seen when the grammar is compiled is the request's fault when a reply comes to it.
#[tokio::test]
async fn n7_a_grammar_that_leads_nowhere_is_the_requests_fault() {
    let world = World::new();
    let constraint = json!({"grammar": "start: \"x\" Y\nY: /[^\\s\\S]/"});
    for (route, body) in [
        (CHAT, ask("x")),
        (COMPLETIONS, complete_prompt(&json!("x"))),
    ] {
        let body = with(body, json!({"structured_outputs": constraint}));
        let reply = world.post_to(route, &body).await.json();
        assert_eq!(reply["error"]["code"], "constraint_dead_end", "{reply}");
        assert_eq!(reply["error"]["type"], "invalid_request_error", "{reply}");
    }
}
