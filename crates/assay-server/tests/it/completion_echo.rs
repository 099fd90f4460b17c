//! Echoed prompts and their scores: row R10 over HTTP.

use serde_json::{Value, json};

use crate::completions::{check_completion, complete_prompt, list};
use crate::values::log_softmax;
use crate::vocab::{self, GO};
use crate::world::{Setup, World, order, script, with};

/// Prompts of every kind, with the token ids that they are.
fn prompts() -> Vec<(Value, Vec<u32>)> {
    let text = "Is it? 日本語 🙂 yes";
    let ids = vocab::encode(text.as_bytes());
    let forced = format!("{}<|go|>", order(&[72, 105]));
    let forced_ids = [vocab::encode(order(&[72, 105]).as_bytes()), vec![GO]].concat();
    vec![
        (json!(text), ids.clone()),
        (json!(ids), ids.clone()),
        (json!([text]), ids.clone()),
        (json!([ids]), ids),
        (
            json!([256, 264, 0xff, 0xc3, 40, 7]),
            vec![256, 264, 0xff, 0xc3, 40, 7],
        ),
        (json!([[65]]), vec![65]),
        (json!("x"), vec![120]),
        (json!(forced), forced_ids),
    ]
}

/// Checks the scores of `prompt` against the rows of the script.
fn check_prompt_scores(logprobs: &Value, prompt: &[u32]) {
    for position in 1..prompt.len() {
        let reference = log_softmax(&script(&prompt[..position]));
        let own = usize::try_from(prompt[position]).expect("small");
        let value = logprobs["token_logprobs"][position]
            .as_f64()
            .expect("a value");
        assert!(
            (value - reference[own]).abs() < 1e-12,
            "{position}: {value}"
        );
    }
}

#[tokio::test]
async fn r10_fault_73_fault_75_fault_78_fault_79_fault_89_prompts_are_echoed_with_their_scores() {
    let world = World::new();
    for (prompt, ids) in prompts() {
        for max_tokens in [0, 1, 5] {
            for logprobs in [0, 1, 4] {
                let more = json!({
                    "echo": true, "logprobs": logprobs, "max_tokens": max_tokens,
                    "return_token_ids": true, "top_k": 1,
                });
                let body = with(complete_prompt(&prompt), more);
                let reply = check_completion(&world, &body).await;
                let choice = &reply["choices"][0];
                assert_eq!(
                    choice["prompt_token_ids"],
                    json!(ids),
                    "no token is added: {body}"
                );
                let spelled: Vec<u8> = ids.iter().flat_map(|id| spelling(*id)).collect();
                let spelled = String::from_utf8_lossy(&spelled);
                let text = choice["text"].as_str().expect("text");
                assert!(
                    text.starts_with(&*spelled),
                    "{text:?} begins with {spelled:?}"
                );
                check_prompt_scores(&choice["logprobs"], &ids);
                let usage = &reply["usage"];
                let generated = usage["completion_tokens"].as_u64().expect("a count");
                let num_elements = list(&choice["logprobs"]["tokens"]).len() as u64;
                assert_eq!(num_elements, ids.len() as u64 + generated, "{body}");
                if max_tokens == 0 {
                    assert_eq!(text, spelled);
                    assert_eq!(generated, 0);
                    assert_eq!(choice["finish_reason"], "length");
                }
            }
        }
    }
}

fn spelling(id: u32) -> Vec<u8> {
    if id == GO {
        b"<|go|>".to_vec()
    } else {
        vocab::bytes(id)
    }
}

/// Clients that score a prompt ask for one token more and drop the last element: there must be one to drop.
#[tokio::test]
async fn r10_a_reply_of_the_end_token_alone_keeps_its_place_behind_an_echo() {
    let world = World::new();
    let prompt = json!(format!("{}<|go|>", order(&[])));
    let more = json!({"echo": true, "logprobs": 1, "max_tokens": 1, "return_token_ids": true});
    let reply = check_completion(&world, &with(complete_prompt(&prompt), more)).await;
    let choice = &reply["choices"][0];
    let tokens = list(&choice["logprobs"]["tokens"]);
    let num_prompt_tokens = list(&choice["prompt_token_ids"]).len();
    assert_eq!(tokens.len(), num_prompt_tokens + 1);
    assert_eq!(tokens[num_prompt_tokens], "");
    assert_eq!(choice["token_ids"], json!([]));
    let top = &choice["logprobs"]["top_logprobs"][num_prompt_tokens];
    assert!(top.get("<|im_end|>").is_some(), "{top}");
}

/// The same of a stop string that is complete with the first token, or the second, behind the prompt.
#[tokio::test]
async fn r10_a_reply_that_a_stop_string_takes_whole_keeps_a_place_behind_an_echo() {
    let world = World::new();
    for (reply, stop, limits) in [("STOP", "S", 1), ("STOP", "ST", 5), ("日x", "日", 5)] {
        let prompt = format!("é🙂{}<|go|>", order(&vocab::encode(reply.as_bytes())));
        let more = json!({"echo": true, "logprobs": 1, "max_tokens": limits, "stop": stop});
        let body = with(complete_prompt(&json!(prompt)), more);
        let reply = check_completion(&world, &with(body, json!({"return_token_ids": true}))).await;
        let choice = &reply["choices"][0];
        assert_eq!(choice["text"], json!(prompt), "{stop}");
        assert_eq!(choice["stop_reason"], stop);
        let logprobs = &choice["logprobs"];
        let num_prompt_tokens = list(&choice["prompt_token_ids"]).len();
        assert_eq!(list(&logprobs["tokens"]).len(), num_prompt_tokens + 1);
        assert_eq!(logprobs["tokens"][num_prompt_tokens], "");
        let end = logprobs["text_offset"][num_prompt_tokens].as_u64();
        assert_eq!(end, Some(prompt.chars().count() as u64), "{stop}");
    }
}

#[tokio::test]
async fn r10_ragged_batches_with_choices_are_echoed_each_with_its_own() {
    let world = World::new();
    let prompts = [
        vec![72, 105],
        vec![65],
        vocab::encode("日本語".as_bytes()),
        vec![1; 40],
    ];
    let body = with(
        complete_prompt(&json!(prompts)),
        json!({"echo": true, "logprobs": 2, "max_tokens": 3, "n": 3, "temperature": 1}),
    );
    let reply = check_completion(&world, &body).await;
    let choices = list(&reply["choices"]);
    assert_eq!(choices.len(), 12);
    for (index, choice) in choices.iter().enumerate() {
        check_prompt_scores(&choice["logprobs"], &prompts[index / 3]);
    }
}

#[tokio::test]
async fn fault_66_fault_81_fault_82_fault_85_fault_93_cold_warm_and_in_chunks_the_same_bits() {
    let ids: Vec<u32> = (0..1_500).map(|n| n * 7 % 250).collect();
    let body = with(
        complete_prompt(&json!(ids)),
        json!({"echo": true, "logprobs": 3, "max_tokens": 1}),
    );
    let mut seen = std::collections::BTreeSet::new();
    for max_num_batched_tokens in [64, 512, 2_048] {
        let mut setup = Setup::default();
        setup.engine.max_num_batched_tokens = max_num_batched_tokens;
        let world = setup.build();
        for _ in 0..2 {
            let reply = check_completion(&world, &body).await;
            check_prompt_scores(&reply["choices"][0]["logprobs"], &ids);
            seen.insert(reply["choices"].to_string());
        }
    }
    assert_eq!(seen.len(), 1);
}

/// Chunks leave while the prompt is still being computed, and hold their own entries alone.
#[tokio::test]
async fn r10_fault_86_an_echo_is_streamed_as_it_is_scored() {
    let mut setup = Setup::default();
    setup.engine.max_num_batched_tokens = 64;
    let world = setup.build();
    let ids: Vec<u32> = (0..1_000).map(|n| n % 250).collect();
    let body = with(
        complete_prompt(&json!(ids)),
        json!({"echo": true, "logprobs": 1, "max_tokens": 0, "stream": true}),
    );
    let chunks = world.post_to(crate::world::COMPLETIONS, &body).await.data();
    let sizes: Vec<usize> = chunks
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["logprobs"]["tokens"].as_array())
        .map(Vec::len)
        .collect();
    assert_eq!(sizes.iter().sum::<usize>(), 1_000);
    assert!(
        sizes.len() > 10 && sizes.iter().all(|size| *size <= 128),
        "{sizes:?}"
    );
}

#[tokio::test]
async fn fault_77_offsets_count_from_the_start_of_the_prompt_without_an_echo_too() {
    let world = World::new();
    let prompt = format!("é日🙂{}<|go|>", order(&vocab::encode("ü!".as_bytes())));
    let body = with(complete_prompt(&json!(prompt)), json!({"logprobs": 0}));
    let reply = check_completion(&world, &body).await;
    let num_chars = prompt.chars().count();
    let logprobs = &reply["choices"][0]["logprobs"];
    assert_eq!(logprobs["tokens"], json!(["", "ü", "!"]));
    assert_eq!(
        logprobs["text_offset"],
        json!([num_chars, num_chars, num_chars + 1])
    );
}

#[tokio::test]
async fn r10_an_echo_without_scores_is_the_text_alone() {
    let world = World::new();
    let prompt = format!("say {}<|go|>", order(&vocab::encode(b"hi")));
    for (max_tokens, reply) in [(0, ""), (9, "hi")] {
        let more = json!({"echo": true, "max_tokens": max_tokens});
        let body = with(complete_prompt(&json!(prompt)), more);
        let answer = check_completion(&world, &body).await;
        assert_eq!(answer["choices"][0]["text"], format!("{prompt}{reply}"));
    }
    assert_eq!(
        world.engine.stats().num_finished_length,
        0,
        "scoring nothing takes no pass"
    );
}

/// `logprobs_content` says the same in chat's shape, and nothing without it.
#[tokio::test]
async fn entries_come_besides_the_arrays() {
    let world = World::new();
    let more = json!({"echo": true, "logprobs": 2, "max_tokens": 3, "return_token_ids": true, "temperature": 0});
    let body = with(complete_prompt(&json!("Is it? 日本")), more);
    let plain = check_completion(&world, &body).await;
    assert!(plain["choices"][0]["logprobs"].get("content").is_none());
    let body = with(body, json!({"logprobs_content": true}));
    let reply = check_completion(&world, &body).await;
    let choice = &reply["choices"][0];
    let logprobs = &choice["logprobs"];
    let content = list(&logprobs["content"]);
    assert_eq!(content.len(), list(&logprobs["tokens"]).len());
    assert_eq!(content[0], Value::Null);
    let mut ids = list(&choice["prompt_token_ids"]).to_vec();
    ids.extend_from_slice(list(&choice["token_ids"]));
    for (index, entry) in content.iter().enumerate().skip(1) {
        assert_eq!(entry["token"], logprobs["tokens"][index]);
        assert_eq!(entry["logprob"], logprobs["token_logprobs"][index]);
        if let Some(id) = ids.get(index) {
            assert_eq!(entry["token_id"], *id, "{index}");
        }
        assert_eq!(list(&entry["top_logprobs"]).len(), 2);
        assert!(entry["top_logprobs"][0]["token_id"].is_u64());
    }
}
