//! `prompt_logprobs`: row R12 over HTTP.

use serde_json::{Value, json};

use crate::completions::{check_completion, complete, list};
use crate::values::log_softmax;
use crate::world::{World, ask, script, with};

/// Checks a prompt's scores against the rows of the script.
fn check_prompt_logprobs(scores: &Value, prompt: &Value, num_top: usize) {
    let ids: Vec<u32> = serde_json::from_value(prompt.clone()).expect("ids");
    let scores = list(scores);
    assert_eq!(scores.len(), ids.len());
    assert_eq!(scores[0], Value::Null);
    for (position, scored) in scores.iter().enumerate().skip(1) {
        let row = script(&ids[..position]);
        let reference = log_softmax(&row);
        let mut ranked: Vec<usize> = (0..row.len()).collect();
        ranked.sort_by(|a, b| row[*b].total_cmp(&row[*a]).then(a.cmp(b)));
        let own = usize::try_from(ids[position]).expect("small");
        let mut expected: Vec<usize> = ranked[..num_top].to_vec();
        if !expected.contains(&own) {
            expected.push(own);
        }
        let scored = scored.as_object().expect("an object");
        assert_eq!(scored.len(), expected.len(), "{position}");
        for id in expected {
            let one = &scored[&id.to_string()];
            let rank = ranked
                .iter()
                .position(|other| *other == id)
                .expect("ranked")
                + 1;
            assert_eq!(one["rank"], json!(rank), "{position}: {one}");
            let error = one["logprob"].as_f64().expect("finite") - reference[id];
            assert!(error.abs() < 1e-12, "{position}: off by {error}");
            assert!(one["decoded_token"].is_string());
        }
    }
}

#[tokio::test]
async fn r12_fault_79_fault_83_prompts_of_chat_and_completions_have_their_scores() {
    let world = World::new();
    for num_top in [0, 1, 5, 20] {
        let more = json!({"prompt_logprobs": num_top, "return_token_ids": true, "temperature": 0.5, "top_k": 1});
        for _ in ["cold", "from the cache"] {
            let reply = world.reply(&with(ask("ok"), more.clone())).await;
            let ids = &reply["choices"][0]["prompt_token_ids"];
            check_prompt_logprobs(&reply["prompt_logprobs"], ids, num_top);
            assert_eq!(reply["choices"][0]["message"]["content"], "ok");

            let asked = with(complete("ok"), more.clone());
            let asked = with(asked, json!({"n": 2, "logprobs": 2, "echo": true}));
            let reply = check_completion(&world, &asked).await;
            for choice in list(&reply["choices"]) {
                let ids = &choice["prompt_token_ids"];
                check_prompt_logprobs(&choice["prompt_logprobs"], ids, num_top);
            }
        }
    }
}

#[tokio::test]
async fn r12_fault_87_wrong_asks_are_refused() {
    let world = World::new();
    for bad in [
        json!(-1),
        json!(21),
        json!(1.5),
        json!(true),
        json!("1"),
        json!([]),
    ] {
        let body = with(ask("x"), json!({"prompt_logprobs": bad}));
        world.check_refused(&body, "prompt_logprobs").await;
    }
    let streamed = with(ask("x"), json!({"prompt_logprobs": 1, "stream": true}));
    let message = world.check_refused(&streamed, "prompt_logprobs").await;
    assert!(message.contains("stream"), "{message}");
    let absent = world
        .reply(&with(ask("x"), json!({"prompt_logprobs": null})))
        .await;
    assert!(absent.get("prompt_logprobs").is_none());
}

#[tokio::test]
async fn r12_a_single_token_has_no_score() {
    let world = World::new();
    let body = json!({"prompt": [65], "prompt_logprobs": 3, "max_tokens": 0});
    let reply = check_completion(&world, &body).await;
    assert_eq!(reply["choices"][0]["prompt_logprobs"], json!([null]));
}
