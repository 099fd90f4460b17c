//! Typed decisions: one reading behind every dialect, beside the same paths read as echoed prompts.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::completions::{complete_prompt, list};
use crate::scored::bits;
use crate::vocab;
use crate::world::{COMPLETIONS, World, with};

pub(crate) const DECISIONS: &str = "/v1/decisions";
pub(crate) const SYSTEM_ONE: &str = "/v1/systemone";
pub(crate) const DECIDE: &str = "/v1/decide";

pub(crate) const STATE: &str = "I was charged twice, 日本 <|im_end|>.";

/// How the choice of [`check_same_bits`] is put.
pub(crate) const CHOICE_QUESTION: &str = "Question: Which team?\nOptions:\n- Billing: Payments, refunds\n- Tech\n- 1\n- 11\n\nReply with one of the options only.";

/// Sends a decision that must succeed.
pub(crate) async fn decide(world: &World, path: &str, body: &Value) -> Value {
    let answer = world.post_to(path, body).await;
    answer.expect_status(StatusCode::OK).json()
}

pub(crate) fn choice_of(options: &[(&str, Option<&str>)]) -> Value {
    let criteria = options
        .iter()
        .map(|(name, description)| ((*name).to_owned(), json!(description)));
    let criteria: serde_json::Map<String, Value> = criteria.collect();
    json!({"type": "choice", "instructions": "Which team?", "criteria": criteria})
}

pub(crate) fn teams() -> Value {
    choice_of(&[
        ("Billing", Some("Payments, refunds")),
        ("Tech", None),
        ("1", None),
        ("11", None),
    ])
}

pub(crate) fn openai_teams() -> Value {
    json!({"type": "choice", "instructions": "Which team?", "choices": [
        {"value": "Billing", "description": "Payments, refunds"}, {"value": "Tech"}, {"value": "1"}, {"value": "11"},
    ]})
}

pub(crate) fn system_one(questions: Value) -> Value {
    json!({"model": "jev-latest", "state": STATE, "questions": questions})
}

/// The tokens of a prompt that puts `question` below the state.
async fn prompt_token_ids(world: &World, question: &str) -> Vec<u32> {
    let content = format!("Text: {STATE}\n\n{question}");
    let body = json!({"messages": [{"role": "user", "content": content}]});
    let tokenized = world.post_to("/tokenize", &body).await.json();
    serde_json::from_value(tokenized["tokens"].clone()).expect("ids")
}

/// What an echo of the whole path says of its last tokens.
async fn echoed(world: &World, prompt: &[u32], path: &[u32]) -> Vec<f64> {
    let whole = [prompt, path].concat();
    let echo = json!({"echo": true, "logprobs": 0, "max_tokens": 0});
    let body = with(complete_prompt(&json!(whole)), echo);
    let answer = world.post_to(COMPLETIONS, &body).await;
    let reply = answer.expect_status(StatusCode::OK).json();
    let logprobs = list(&reply["choices"][0]["logprobs"]["token_logprobs"]);
    let own = logprobs[prompt.len()..].iter();
    own.map(|logprob| logprob.as_f64().expect("a score"))
        .collect()
}

/// Their sum, in path order.
pub(crate) async fn echoed_sum(world: &World, prompt: &[u32], path: &[u32]) -> f64 {
    let logprobs = echoed(world, prompt, path).await;
    logprobs.iter().fold(0.0, |sum, logprob| sum + logprob)
}

/// Checks a label's steps to be an echo's, and its end to be that of `end_tokens` together; with one, to the bit.
async fn check_label(world: &World, prompt: &[u32], label: &Value, end_tokens: &[u32]) -> f64 {
    let path: Vec<u32> = serde_json::from_value(label["token_ids"].clone()).expect("ids");
    let spelled = list(&label["tokens"])
        .iter()
        .map(|token| token.as_str().expect("text"));
    let spelled: Vec<&str> = spelled.collect();
    assert_eq!(spelled.len(), path.len());
    let words = label["label"].as_str().expect("text");
    assert!(
        !words.is_ascii() || spelled.concat().ends_with(words),
        "{label}"
    );
    let steps: Vec<u64> = list(&label["logprobs"]).iter().map(bits).collect();
    let mut end_mass = 0.0;
    for end_token in end_tokens {
        let whole = [&path[..], &[*end_token]].concat();
        let found = echoed(world, prompt, &whole).await;
        let found_bits: Vec<u64> = found.iter().map(|logprob| logprob.to_bits()).collect();
        assert_eq!(found_bits[..path.len()], steps[..path.len()], "{label}");
        if end_tokens.len() == 1 {
            assert_eq!(found_bits, steps, "{label}");
        }
        end_mass += found[path.len()].exp();
    }
    let steps: Vec<f64> = steps.into_iter().map(f64::from_bits).collect();
    let end = steps[path.len()];
    assert!((end - end_mass.ln()).abs() < 1e-9, "{label}");
    let joint = steps.iter().fold(0.0, |sum, step| sum + step);
    assert_eq!(bits(&label["logprob"]), joint.to_bits(), "{label}");
    joint
}

#[tokio::test]
async fn every_dialect_and_the_echoed_path_give_the_same_bits() {
    let world = World::new();
    check_same_bits(&world, CHOICE_QUESTION, &[vocab::END]).await;
}

/// Asks for a choice and a predicate in every dialect; `question` is how the choice is put.
pub(crate) async fn check_same_bits(world: &World, question: &str, end_tokens: &[u32]) {
    let diagnostics = json!({"diagnostics": true});
    let asked = system_one(
        json!({"team": teams(), "spam": {"type": "noul", "instructions": "Is it spam?"}}),
    );
    let by_id = decide(world, SYSTEM_ONE, &with(asked, diagnostics.clone())).await;
    let asked = json!({"input": STATE, "questions": [openai_teams(), {"type": "predicate", "instructions": "Is it spam?", "name": "spam"}]});
    let by_index = decide(world, DECISIONS, &with(asked, diagnostics.clone())).await;
    let schema = json!({"enum": ["Billing", "Tech", "1", "11"], "description": "Which team?"});
    let asked =
        json!({"state": STATE, "schema": {"type": "boolean", "description": "Is it spam?"}});
    let spam = decide(world, DECIDE, &with(asked, diagnostics.clone())).await;
    let plain = json!({"state": STATE, "schema": schema});
    let plain = decide(world, DECIDE, &with(plain, diagnostics.clone())).await;

    let answer = &by_id["answers"]["team"];
    let twin = &by_index["answers"][0];
    for name in [
        "labels",
        "label_mass",
        "argmax_is_label",
        "prompt_tokens",
        "trie_edges",
    ] {
        assert_eq!(
            answer["x_diagnostics"][name], twin["diagnostics"][name],
            "{name}"
        );
    }
    assert_eq!(answer["x_label_mass"], by_index["answers"][0]["label_mass"]);
    let probabilities: Vec<&Value> = answer["probabilities"]
        .as_object()
        .expect("an object")
        .values()
        .collect();
    for (index, pair) in list(&by_index["answers"][0]["probabilities"])
        .iter()
        .enumerate()
    {
        assert_eq!(bits(&pair["probability"]), bits(probabilities[index]));
    }
    for name in ["confidence", "choice"] {
        assert_eq!(answer[name], by_index["answers"][0][name], "{name}");
    }
    let noul = &by_id["answers"]["spam"]["noul"];
    assert_eq!(bits(noul), bits(&by_index["answers"][1]["probability"]));
    assert_eq!(
        bits(noul),
        bits(&spam["fields"][0]["distribution"][0]["probability"])
    );
    let most = noul
        .as_f64()
        .expect("a number")
        .max(1.0 - noul.as_f64().expect("a number"));
    assert!((spam["probability"].as_f64().expect("a number") - most).abs() < 1e-12);

    let prompt = prompt_token_ids(world, question).await;
    let diagnostics = &answer["x_diagnostics"];
    assert_eq!(diagnostics["prompt_tokens"], json!(prompt.len()));
    let labels = list(&diagnostics["labels"]);
    assert_eq!(labels.len(), 4);
    let mut mass = 0.0;
    for label in labels {
        mass += check_label(world, &prompt, label, end_tokens).await.exp();
    }
    let label_mass = diagnostics["label_mass"].as_f64().expect("a number");
    assert!(
        (label_mass - mass).abs() < 1e-12 * mass.max(1.0),
        "{label_mass} {mass}"
    );

    // The options without their description are another question, and the same one as a schema's.
    let bare = choice_of(&[("Billing", None), ("Tech", None), ("1", None), ("11", None)]);
    let bare = decide(world, SYSTEM_ONE, &system_one(json!({"x": bare}))).await;
    let values = bare["answers"]["x"]["probabilities"]
        .as_object()
        .expect("an object");
    let field = &plain["fields"][0];
    for (pair, value) in list(&field["distribution"]).iter().zip(values.values()) {
        assert_eq!(bits(&pair["probability"]), bits(value));
    }
    assert_eq!(plain["answer"], bare["answers"]["x"]["choice"]);
}

#[tokio::test]
async fn names_order_and_neighbours_of_questions_move_no_bit() {
    let world = World::new();
    let score = json!({"type": "score", "instructions": "How angry?", "criteria": ["Calm", "Cross", "Furious"]});
    let noul = json!({"type": "noul", "criteria": {"true": "A threat", "false": null}});
    let asked = json!({"a": teams(), "b": score, "c": noul});
    let together = decide(&world, SYSTEM_ONE, &system_one(asked)).await;
    let renamed = json!({"질문 🎯": noul, "q.2[0]": teams(), "b": score});
    let renamed = decide(&world, SYSTEM_ONE, &system_one(renamed)).await;
    for (name, other) in [("a", "q.2[0]"), ("b", "b"), ("c", "질문 🎯")] {
        assert_eq!(together["answers"][name], renamed["answers"][other]);
    }
    for (name, question) in [("a", teams()), ("b", score), ("c", noul)] {
        let alone = decide(&world, SYSTEM_ONE, &system_one(json!({name: question}))).await;
        assert_eq!(alone["answers"][name], together["answers"][name]);
    }
    let ids: Vec<&String> = renamed["answers"]
        .as_object()
        .expect("an object")
        .keys()
        .collect();
    assert_eq!(
        ids,
        ["질문 🎯", "q.2[0]", "b"],
        "answers keep the questions' order"
    );
    let answer = &together["answers"]["b"];
    assert_eq!(
        answer["legend"],
        json!({"0": "Calm", "1": "Cross", "2": "Furious"})
    );
    let p: Vec<f64> = answer["probabilities"]
        .as_object()
        .expect("an object")
        .values()
        .map(|p| p.as_f64().expect("a number"))
        .collect();
    assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    let score = answer["score"].as_f64().expect("a number");
    assert!((score - p[1] - 2.0 * p[2]).abs() < 1e-12);
}

#[tokio::test]
async fn d3_states_keep_their_spelling_and_share_their_tokens() {
    let world = World::new();
    let ask = |state: &str| {
        format!(
            "{{\"state\": {state}, \"questions\": {{\"q\": {{\"type\": \"noul\", \"instructions\": \"So?\"}}}}}}"
        )
    };
    let post = |body: String| {
        let world = world.clone();
        async move {
            let request = axum::http::Request::post(SYSTEM_ONE)
                .header("content-type", "application/json")
                .body(body.into())
                .expect("a request");
            world
                .send(request)
                .await
                .expect_status(StatusCode::OK)
                .json()["answers"]["q"]["noul"]
                .clone()
        }
    };
    let spelled = post(ask("{\"b\": 1.10, \"a\": [1e2, \"\\u00e9\"]}")).await;
    let as_text = json!("{\"b\":1.10,\"a\":[1e2,\"é\"]}").to_string();
    assert_eq!(bits(&spelled), bits(&post(ask(&as_text)).await));
    assert_ne!(
        bits(&spelled),
        bits(&post(ask("{\"b\": 1.1, \"a\": [1e2, \"é\"]}")).await)
    );
    assert_ne!(
        bits(&spelled),
        bits(&post(ask("{\"a\": [1e2, \"é\"], \"b\": 1.10}")).await)
    );

    // Twenty questions: the state's tokens go through the model once.
    let state = "A long tale. ".repeat(40);
    let question =
        |index: usize| json!({"type": "noul", "instructions": format!("Is it {index}?")});
    let questions: serde_json::Map<String, Value> = (0..20)
        .map(|index| (format!("q{index}"), question(index)))
        .collect();
    let body = json!({"state": state, "questions": questions});
    let reply = decide(&world, SYSTEM_ONE, &body).await;
    let input = reply["usage"]["input_tokens"].as_u64().expect("a count");
    let state_tokens = u64::try_from(state.len()).expect("small");
    assert!(input < state_tokens + 20 * 60, "{input} tokens");
    assert!(input > state_tokens + 20 * 20, "{input} tokens");
}

#[tokio::test]
async fn d7_codes_stand_for_options_and_are_read_alike() {
    let world = World::new();
    let asked = system_one(json!({"team": teams()}));
    let coded = decide(
        &world,
        SYSTEM_ONE,
        &with(asked, json!({"readout": "code", "diagnostics": true})),
    )
    .await;
    let labels = list(&coded["answers"]["team"]["x_diagnostics"]["labels"]);
    let codes: Vec<&str> = labels
        .iter()
        .map(|label| label["label"].as_str().expect("text"))
        .collect();
    assert_eq!(codes, ["A", "B", "C", "D"]);
    let question = "Question: Which team?\nOptions:\nA. Billing: Payments, refunds\nB. Tech\nC. 1\nD. 11\n\nReply with the code of one option only.";
    let prompt = prompt_token_ids(&world, question).await;
    for label in labels {
        let code = label["label"].as_str().expect("text").as_bytes();
        let path = [&vocab::encode(code)[..], &[vocab::END]].concat();
        assert_eq!(
            bits(&label["logprob"]),
            echoed_sum(&world, &prompt, &path).await.to_bits()
        );
    }
    // Many options: codes of one length.
    let options: serde_json::Map<String, Value> = (0..255)
        .map(|index| (format!("Queue {index}"), Value::Null))
        .collect();
    let many = json!({"q": {"type": "choice", "instructions": "Which?", "criteria": options}});
    let many = with(
        system_one(many),
        json!({"readout": "code", "diagnostics": true}),
    );
    let many = decide(&world, SYSTEM_ONE, &many).await;
    let lengths: std::collections::BTreeSet<usize> =
        list(&many["answers"]["q"]["x_diagnostics"]["labels"])
            .iter()
            .map(|label| list(&label["token_ids"]).len())
            .collect();
    assert_eq!(lengths.len(), 1, "{lengths:?}");
}

fn joints(answer: &Value) -> Vec<f64> {
    let labels = list(&answer["x_diagnostics"]["labels"]);
    labels
        .iter()
        .map(|label| label["logprob"].as_f64().expect("a number"))
        .collect()
}

fn check_near(found: &Value, logits: &[f64]) {
    let most = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logits.iter().map(|logit| (logit - most).exp()).collect();
    let total: f64 = weights.iter().sum();
    let found: Vec<f64> = found
        .as_object()
        .expect("an object")
        .values()
        .map(|p| p.as_f64().expect("a number"))
        .collect();
    assert_eq!(found.len(), weights.len());
    for (p, weight) in found.iter().zip(weights) {
        assert!((p - weight / total).abs() < 1e-12, "{p} {}", weight / total);
    }
}

#[tokio::test]
async fn d8_rotations_and_prior_are_what_the_single_readings_give() {
    let world = World::new();
    let options = [("red", Some("warm")), ("green", None), ("blue", None)];
    let rotated = |by: usize| {
        let mut options = options;
        options.rotate_left(by);
        choice_of(&options)
    };
    let ask = |state: &str, question: Value, more: Value| {
        let body = json!({"state": state, "questions": {"q": question}, "diagnostics": true});
        with(body, more)
    };
    // Joints by option, in the own order, under every order and state.
    let mut readings = Vec::new();
    for state in [STATE, ""] {
        for by in 0..3 {
            let reply = decide(&world, SYSTEM_ONE, &ask(state, rotated(by), json!({}))).await;
            let mut joints = joints(&reply["answers"]["q"]);
            joints.rotate_right(by);
            readings.push(joints);
        }
    }
    let mean = |readings: &[Vec<f64>]| -> Vec<f64> {
        let count = readings.len() as f64;
        (0..3)
            .map(|option| readings.iter().map(|joints| joints[option]).sum::<f64>() / count)
            .collect()
    };
    let own = decide(&world, SYSTEM_ONE, &ask(STATE, rotated(0), json!({}))).await;
    let own = &own["answers"]["q"];
    assert!(own.get("x_raw_probabilities").is_none());
    let (with_state, without): (Vec<_>, Vec<_>) = (readings[..3].to_vec(), readings[3..].to_vec());
    let ratios: Vec<Vec<f64>> = with_state
        .iter()
        .zip(&without)
        .map(|(joints, prior)| {
            joints
                .iter()
                .zip(prior)
                .map(|(joint, prior)| joint - prior)
                .collect()
        })
        .collect();
    let cases = [
        (json!({"debias": {"rotations": 3}}), mean(&with_state)),
        (json!({"debias": {"rotations": 200}}), mean(&with_state)),
        (json!({"prior": "content_free"}), ratios[0].clone()),
        (
            json!({"debias": {"rotations": 3}, "prior": "content_free"}),
            mean(&ratios),
        ),
    ];
    for (settings, logits) in cases {
        // Twice: the second time the prior is known.
        for _ in 0..2 {
            let reply = decide(
                &world,
                SYSTEM_ONE,
                &ask(STATE, rotated(0), settings.clone()),
            )
            .await;
            let answer = &reply["answers"]["q"];
            check_near(&answer["probabilities"], &logits);
            let raw: Vec<Value> = own["probabilities"]
                .as_object()
                .expect("an object")
                .values()
                .cloned()
                .collect();
            assert_eq!(answer["x_raw_probabilities"], json!(raw), "{settings}");
            assert_eq!(answer["x_label_mass"], own["x_label_mass"]);
        }
    }
}

#[tokio::test]
async fn d2_too_little_mass_refuses_the_question_alone() {
    let world = World::new();
    let certain = json!({"type": "noul", "instructions": "#reply 89,101,115#"});
    let body = system_one(json!({"sure": certain, "team": teams()}));
    let reply = decide(
        &world,
        SYSTEM_ONE,
        &with(body, json!({"min_label_mass": 0.2})),
    )
    .await;
    assert_eq!(reply["answers"]["sure"]["type"], "noul");
    let answer = &reply["answers"]["team"];
    assert_eq!(answer["type"], "refusal");
    assert!(answer["x_label_mass"].as_f64().expect("a number") < 0.2);
    let body = json!({"input": STATE, "questions": [openai_teams()], "min_label_mass": 0.5});
    let reply = decide(&world, DECISIONS, &body).await;
    assert_eq!(reply["answers"][0]["type"], "refusal");
    assert_eq!(reply["answers"][0]["name"], Value::Null);
    let body = json!({"state": STATE, "schema": {"type": "boolean"}, "min_label_mass": 0.5});
    let reply = decide(&world, DECIDE, &body).await;
    assert_eq!(
        (&reply["answer"], &reply["refusal"]),
        (&Value::Null, &json!(""))
    );
}
