//! `/v1/score`: joint log-probabilities of continuations.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::completions::{check_completion, complete_prompt, list};
use crate::scored::bits;
use crate::vocab;
use crate::world::{Setup, World, with};

const SCORE: &str = "/v1/score";

/// Asks for scores and checks each to be the sum of its tokens' values in an echo of the whole text.
async fn check_scores(world: &World, context: &[u32], body: &Value, items: &[Vec<u32>]) -> Value {
    let answer = world
        .post_to(SCORE, body)
        .await
        .expect_status(StatusCode::OK);
    let scores = answer.json();
    assert_eq!(list(&scores["data"]).len(), items.len());
    let mut prompt_tokens = 0;
    for (index, item) in items.iter().enumerate() {
        let score = &scores["data"][index];
        assert_eq!(score["index"], index);
        assert_eq!(score["token_ids"], json!(item));
        let whole = [context, &item[..]].concat();
        prompt_tokens += whole.len();
        let echo = json!({"echo": true, "logprobs": 1, "max_tokens": 0});
        let echoed = check_completion(world, &with(complete_prompt(&json!(whole)), echo)).await;
        let logprobs = &echoed["choices"][0]["logprobs"];
        let mut sum = 0.0;
        let mut is_greedy = true;
        for (offset, value) in list(&score["token_logprobs"]).iter().enumerate() {
            let position = context.len() + offset;
            assert_eq!(bits(value), bits(&logprobs["token_logprobs"][position]));
            sum += value.as_f64().expect("finite");
            let top = logprobs["top_logprobs"][position]
                .as_object()
                .expect("an object");
            let most = top.values().next().expect("a value");
            is_greedy &= bits(most) == bits(value);
        }
        assert_eq!(
            score["logprob"].as_f64().map(f64::to_bits),
            Some(sum.to_bits())
        );
        assert_eq!(score["is_greedy"], is_greedy);
    }
    assert_eq!(scores["usage"]["prompt_tokens"], prompt_tokens);
    assert_eq!(scores["usage"]["completion_tokens"], 0);
    scores
}

#[tokio::test]
async fn fault_15_items_are_scored_behind_the_context_alone() {
    let world = World::new();
    let texts = [
        "yes",
        "no",
        "日本",
        " a longer one, of many tokens",
        "1",
        "11",
    ];
    let items: Vec<Vec<u32>> = texts
        .iter()
        .map(|text| vocab::encode(text.as_bytes()))
        .collect();
    let query = "Is it so? ";
    let context = vocab::encode(query.as_bytes());
    let by_text = check_scores(
        &world,
        &context,
        &json!({"query": query, "items": texts}),
        &items,
    )
    .await;
    let by_ids = json!({"query": context, "items": items});
    let by_ids = check_scores(&world, &context, &by_ids, &items).await;
    assert_eq!(by_text["data"], by_ids["data"]);
    // Alone, in another order or beside others: the same bits.
    for (index, text) in texts.iter().enumerate() {
        let alone = json!({"query": query, "items": [text]});
        let alone = check_scores(&world, &context, &alone, &items[index..=index]).await;
        assert_eq!(
            alone["data"][0]["logprob"],
            by_text["data"][index]["logprob"]
        );
    }
}

#[tokio::test]
async fn items_may_be_replies_to_a_conversation_and_share_its_prompt() {
    let world = World::new();
    let messages =
        json!([{"role": "user", "content": format!("{} {}", "long ".repeat(60), "#reply 72#")}]);
    let tokenized = world
        .post_to("/tokenize", &json!({"messages": messages}))
        .await
        .json();
    let context: Vec<u32> = serde_json::from_value(tokenized["tokens"].clone()).expect("ids");
    let items = vec![vec![72], vec![73, 74], vec![72, vocab::END]];
    let body = json!({"messages": messages, "items": items});
    let scores = check_scores(&world, &context, &body, &items).await;
    let value = |index: usize| scores["data"][index]["logprob"].as_f64().expect("finite");
    assert!(value(0) > value(1) && value(0) > -0.5, "{scores}");
    assert_eq!(scores["data"][2]["is_greedy"], true, "{scores}");
    let cached = &scores["usage"]["prompt_tokens_details"]["cached_tokens"];
    let shared = u64::try_from(context.len() - 1).expect("small") * 2;
    assert!(
        cached.as_u64().expect("a count") >= shared,
        "two of three find it: {cached}"
    );
}

#[tokio::test]
async fn wrong_asks_name_their_field() {
    let world = Setup {
        context_length: 40,
        ..Setup::default()
    }
    .build();
    let cases = [
        (json!({"items": ["a"]}), "messages"),
        (json!({"query": "x"}), "items"),
        (json!({"query": "x", "items": []}), "items"),
        (json!({"query": "x", "items": "a"}), "items"),
        (json!({"query": "x", "items": ["a", ""]}), "items[1]"),
        (json!({"query": "x", "items": ["a", []]}), "items[1]"),
        (
            json!({"query": "x", "items": [[vocab::size()]]}),
            "items[0]",
        ),
        (json!({"query": "", "items": ["a"]}), "query"),
        (json!({"query": 5, "items": ["a"]}), "query"),
        (
            json!({"query": "x", "messages": [], "items": ["a"]}),
            "messages",
        ),
        (json!({"query": "x", "items": vec!["a"; 1_025]}), "items"),
        (
            json!({"query": "x".repeat(30), "items": ["a", "b".repeat(11)]}),
            "items[1]",
        ),
        (json!({"query": "x".repeat(41), "items": ["a"]}), "query"),
    ];
    for (body, param) in cases {
        world.check_refused_by(SCORE, &body, param).await;
    }
    assert_eq!(world.engine.stats().num_steps, 0, "no work was done");
}
