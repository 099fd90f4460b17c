//! What an entry spells: the `S` rows over HTTP.

use serde_json::{Value, json};

use crate::scored::{bits, entries, scored};
use crate::vocab::{self, END};
use crate::world::{World, ask, ask_ids, with};

#[tokio::test]
async fn s2_fault_42_fault_43_fault_46_halves_of_a_character() {
    let world = World::new();
    let emoji = vocab::encode("🙂".as_bytes());
    let reply = world.reply(&scored(ask_ids(&emoji), 1)).await;
    let tokens: Vec<_> = entries(&reply)
        .iter()
        .map(|entry| entry["token"].as_str().expect("text"))
        .collect();
    assert_eq!(tokens, ["", "", "", "🙂"]);
    for (entry, byte) in entries(&reply).iter().zip("🙂".bytes()) {
        assert_eq!(entry["bytes"], json!([byte]));
        let alternative = &entry["top_logprobs"][0];
        assert_eq!(
            alternative["token"],
            format!("bytes:\\x{byte:02x}"),
            "not text alone"
        );
        assert_eq!(alternative["bytes"], json!([byte]));
    }
    // 0xff can begin nothing, "(" proves the half character before it invalid.
    let invalid = world.reply(&scored(ask_ids(&[0xff, 0xc3, 0x28]), 0)).await;
    assert_eq!(
        invalid["choices"][0]["message"]["content"],
        "\u{fffd}\u{fffd}("
    );
    let tokens: Vec<_> = entries(&invalid)
        .iter()
        .map(|entry| entry["token"].as_str().expect("text"))
        .collect();
    assert_eq!(tokens, ["\u{fffd}", "", "\u{fffd}("]);
}

#[tokio::test]
async fn s3_fault_5_fault_22_keys_are_exact() {
    let keys = |value: &Value| -> Vec<String> {
        value
            .as_object()
            .expect("an object")
            .keys()
            .cloned()
            .collect()
    };
    let world = World::new();
    let body = with(ask("key"), json!({"logprobs": true, "top_logprobs": 2}));
    let reply = world.reply(&body).await;
    assert_eq!(
        keys(&reply["choices"][0]["logprobs"]),
        ["content", "refusal"]
    );
    for entry in entries(&reply) {
        assert_eq!(keys(entry), ["token", "logprob", "bytes", "top_logprobs"]);
        assert_eq!(
            keys(&entry["top_logprobs"][1]),
            ["token", "logprob", "bytes"]
        );
    }
    assert!(reply["choices"][0].get("token_ids").is_none());

    let reply = world
        .reply(&with(body, json!({"return_token_ids": true})))
        .await;
    for entry in entries(&reply) {
        assert_eq!(
            keys(entry),
            ["token", "logprob", "bytes", "top_logprobs", "token_id"]
        );
        assert_eq!(
            keys(&entry["top_logprobs"][0]),
            ["token", "logprob", "bytes", "token_id"]
        );
    }
    assert_eq!(reply["choices"][0]["token_ids"], json!([107, 101, 121]));
    let prompt_tokens = reply["usage"]["prompt_tokens"].as_u64();
    let prompt_ids = reply["choices"][0]["prompt_token_ids"]
        .as_array()
        .expect("ids");
    assert_eq!(prompt_ids.last(), Some(&json!(vocab::GO)));
    assert_eq!(u64::try_from(prompt_ids.len()).ok(), prompt_tokens);
}

#[tokio::test]
async fn s4_the_ending_token_has_no_entry_but_may_be_asked_for() {
    let world = World::new();
    let plain = world.reply(&scored(ask("1"), 1)).await;
    assert_eq!(entries(&plain).len(), 1);
    assert!(plain["choices"][0]["logprobs"].get("end").is_none());
    assert_eq!(plain["usage"]["completion_tokens"], 2);

    let end = json!({"logprobs_end": true});
    let reply = world.reply(&scored(with(ask("1"), end.clone()), 1)).await;
    let entry = &reply["choices"][0]["logprobs"]["end"];
    assert_eq!(entry["token_id"], END);
    assert_eq!(entry["top_logprobs"][0]["token_id"], END);
    assert_eq!(
        bits(&entry["logprob"]),
        bits(&entry["top_logprobs"][0]["logprob"])
    );
    assert_eq!(entries(&reply).len(), 1);

    let cut = with(ask_ids(&[49, 256 + 13]), json!({"stop": "STOP"}));
    let reply = world.reply(&scored(with(cut, end.clone()), 1)).await;
    assert_eq!(entries(&reply).len(), 1, "text cut by a stop has no entry");
    assert_eq!(reply["choices"][0]["logprobs"]["end"]["token_id"], 256 + 13);

    let long = with(ask("123"), json!({"max_tokens": 2}));
    let reply = world.reply(&scored(with(long, end), 1)).await;
    assert_eq!(reply["choices"][0]["logprobs"]["end"], Value::Null);
    assert_eq!(reply["choices"][0]["finish_reason"], "length");
}

#[tokio::test]
async fn s6_fault_54_fault_58_a_stop_inside_a_token_cuts_its_entry() {
    let world = World::new();
    // ".!" then "!x": the stop "!" begins inside the first.
    let ids = [256, 256 + 2, 256 + 3];
    let whole = world.reply(&scored(ask_ids(&ids), 3)).await;
    let cut = world
        .reply(&scored(with(ask_ids(&ids), json!({"stop": "!"})), 3))
        .await;
    assert_eq!(cut["choices"][0]["message"]["content"], "Hello.");
    assert_eq!(cut["choices"][0]["token_ids"], json!([256, 258]));
    let (entry, full) = (&entries(&cut)[1], &entries(&whole)[1]);
    assert_eq!(entry["token"], ".");
    assert_eq!(entry["bytes"], json!([46]));
    assert_eq!(bits(&entry["logprob"]), bits(&full["logprob"]));
    assert_eq!(entry["top_logprobs"], full["top_logprobs"]);
}

#[tokio::test]
async fn s7_fault_47_fault_49_a_limit_inside_a_character() {
    let world = World::new();
    let ids = vocab::encode("a🙂".as_bytes());
    let reply = world
        .reply(&scored(with(ask_ids(&ids), json!({"max_tokens": 3})), 0))
        .await;
    let choice = &reply["choices"][0];
    assert_eq!(choice["message"]["content"], "a");
    assert_eq!(choice["finish_reason"], "length");
    let kept: Vec<_> = entries(&reply)
        .iter()
        .map(|entry| (entry["token"].clone(), entry["bytes"].clone()))
        .collect();
    assert_eq!(
        kept,
        [
            (json!("a"), json!([97])),
            (json!(""), json!([0xf0])),
            (json!(""), json!([0x9f]))
        ]
    );
}
