//! Receipts: every route's numbers come out again from the receipt alone, whatever is changed in one is named, and the
//! ledger has a row before the answer leaves.

use assay_constrain::ConstraintFactory;
use assay_receipt::{Receipt, Replay, ReplayError, Replayed, SealError, open, seal};
use assay_server::ledger::{Ledger, LedgerReader, RowName};
use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::decide::ticket;
use crate::decisions::{DECIDE, DECISIONS, STATE, SYSTEM_ONE};
use crate::reasoning::{OPENED, ask_opened};
use crate::tool_calls::{HERMES, tools};
use crate::vocab;
use crate::world::{CHAT, COMPLETIONS, Setup, World, ask, ask_message, with};

const SCORE: &str = "/v1/score";
const RESPONSES: &str = "/v1/responses";

fn world(template: &'static str) -> World {
    Setup {
        template: Some(template),
        ..Setup::default()
    }
    .build()
}

/// Computes a receipt again on the engine of `world`.
fn replay(world: &World, receipt: &Receipt) -> Result<Replayed, ReplayError> {
    let replay = Replay {
        receipt,
        engine: &world.engine,
        constraints: &|| ConstraintFactory::new(&vocab::tokenizer()),
        is_abandoned: &|| false,
    };
    replay.run()
}

async fn receipt_of(world: &World, path: &str, body: &Value) -> Value {
    let body = with(body.clone(), json!({"receipt": true}));
    let answer = world.post_to(path, &body).await;
    let reply = answer.expect_status(StatusCode::OK).json();
    let name = if path == SYSTEM_ONE {
        "x_receipt"
    } else {
        "receipt"
    };
    assert!(reply[name].is_object(), "{path}: {reply}");
    reply[name].clone()
}

fn opened(sealed: &Value) -> Receipt {
    open(sealed.to_string().as_bytes()).expect("a receipt as it was made")
}

/// Asks with a receipt and computes it again on another engine, which has seen nothing.
async fn check_replays(template: &'static str, path: &str, body: &Value) -> (Value, Replayed) {
    let sealed = receipt_of(&world(template), path, body).await;
    let receipt = opened(&sealed);
    assert_eq!(receipt.route, path);
    let replayed = replay(&world(template), &receipt);
    let replayed = replayed.unwrap_or_else(|error| panic!("{path} {body}: {error}\n{sealed}"));
    assert_eq!(replayed.num_outputs, receipt.outputs.len());
    assert!(
        replayed.num_values > 0 || receipt.sampling.is_some(),
        "{sealed}"
    );
    (sealed, replayed)
}

fn sampled() -> Value {
    with(
        ask_message("Tell me something."),
        json!({"temperature": 1.3, "top_k": 40, "top_p": 0.95, "min_p": 0.01, "n": 3, "max_tokens": 12, "seed": -5,
            "frequency_penalty": 0.5, "repetition_penalty": 1.1, "logit_bias": {"65": 2.5}}),
    )
}

fn questions() -> Value {
    json!({
        "input": STATE,
        "questions": [
            {"type": "choice", "instructions": "Which team?", "choices": [{"value": "Billing"}, {"value": "Tech"}, {"value": "1"}, {"value": "11"}]},
            {"type": "predicate", "instructions": "Is it spam?"},
        ],
    })
}

#[tokio::test]
async fn what_was_drawn_is_drawn_again() {
    let schema = json!({"type": "object", "properties": {"b": {"type": "boolean"}, "a": {"enum": ["x", "yes"]}},
        "required": ["b", "a"], "additionalProperties": false});
    let form = json!({"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}, "max_tokens": 200});
    let forced =
        json!({"tools": tools(), "tool_choice": "required", "max_tokens": 900, "temperature": 1});
    let strict = json!({"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"enum": [{"a": 1}]}}},
        "max_tokens": 300, "thinking_token_budget": 9});
    let thoughts = ask_opened(&vocab::encode(b"thinking and thinking"));
    let rows = [
        (vocab::TEMPLATE, CHAT, ask("Hello there")),
        (vocab::TEMPLATE, CHAT, sampled()),
        (
            vocab::TEMPLATE,
            CHAT,
            with(
                sampled(),
                json!({"logprobs": true, "logprobs_mode": "processed"}),
            ),
        ),
        (
            vocab::TEMPLATE,
            CHAT,
            with(
                ask("one two STOP three"),
                json!({"stop": ["STOP", "two t"]}),
            ),
        ),
        (
            vocab::TEMPLATE,
            CHAT,
            with(ask("cut short"), json!({"max_tokens": 3})),
        ),
        (vocab::TEMPLATE, CHAT, with(ask_message("Give JSON."), form)),
        (HERMES, CHAT, with(ask("No call."), forced)),
        (OPENED, CHAT, with(thoughts, strict)),
        (
            vocab::TEMPLATE,
            COMPLETIONS,
            json!({"prompt": ["abc", "abd", "x"], "n": 2, "temperature": 1, "seed": 9, "max_tokens": 5}),
        ),
        (
            vocab::TEMPLATE,
            COMPLETIONS,
            json!({"prompt": "abcdef", "echo": true, "logprobs": 2, "max_tokens": 4, "temperature": 0}),
        ),
        (
            vocab::TEMPLATE,
            RESPONSES,
            json!({"input": "#reply 72,105#", "temperature": 0.7, "seed": 3}),
        ),
    ];
    for (template, path, body) in rows {
        let (sealed, replayed) = check_replays(template, path, &body).await;
        assert!(replayed.num_drawn > 0, "{sealed}");
    }
}

#[tokio::test]
async fn what_was_read_is_read_again() {
    let debiased = json!({"debias": {"rotations": 3}, "prior": "content_free"});
    let system_one = json!({"state": STATE, "questions": {"q": {"type": "score", "instructions": "How angry?", "criteria": ["Calm", "Cross"]}}});
    let rows = [
        (DECISIONS, questions(), 2),
        (DECISIONS, with(questions(), debiased), 2),
        (SYSTEM_ONE, system_one, 1),
        (
            DECIDE,
            json!({"state": STATE, "schema": ticket(), "search": {"beams": 3}}),
            7,
        ),
        (SCORE, json!({"query": "abc", "items": ["d", "ef"]}), 0),
        (
            COMPLETIONS,
            json!({"prompt": "abcdef", "echo": true, "logprobs": 0, "max_tokens": 0}),
            0,
        ),
    ];
    for (path, body, num_distributions) in rows {
        let (sealed, replayed) = check_replays(vocab::TEMPLATE, path, &body).await;
        assert_eq!(replayed.num_distributions, num_distributions, "{sealed}");
        assert_eq!(sealed["sampling"], Value::Null);
    }
}

/// A prior that was read before is read again for a receipt: it must stand in it.
#[tokio::test]
async fn a_receipt_holds_the_priors_that_the_server_knew() {
    let world = World::new();
    let body = with(questions(), json!({"prior": "content_free"}));
    let first = receipt_of(&world, DECISIONS, &body).await;
    let second = receipt_of(&world, DECISIONS, &body).await;
    assert_eq!(first["outputs"], second["outputs"]);
    assert_eq!(first["distribution_bits"], second["distribution_bits"]);
    assert_eq!(first["outputs"].as_array().map(Vec::len), Some(4));
}

/// Paths of all that has no members of its own.
fn leaves(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, member) in members {
                leaves(member, &format!("{path}/{name}"), found);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                leaves(item, &format!("{path}/{index}"), found);
            }
        }
        _ => found.push(path.to_owned()),
    }
}

/// The smallest change of a value that leaves it of its kind.
fn flip(value: &mut Value) {
    *value = match value {
        Value::String(text) => {
            let mut text = text.clone();
            let last = text.pop();
            text.push(if last == Some('0') { '1' } else { '0' });
            json!(text)
        }
        Value::Number(number) => json!(number.as_i64().expect("an integer") ^ 1),
        Value::Bool(flag) => json!(!*flag),
        Value::Null => json!(0),
        Value::Array(_) => json!([0]),
        Value::Object(_) => json!({"x": 0}),
    };
}

#[tokio::test]
async fn whatever_is_changed_in_a_receipt_is_named_by_its_member() {
    let world = World::new();
    for (path, body) in [(DECISIONS, questions()), (CHAT, sampled())] {
        let sealed = receipt_of(&world, path, &body).await;
        let mut paths = Vec::new();
        leaves(&sealed, "", &mut paths);
        assert!(paths.len() > 60, "{sealed}");
        for path in paths {
            let mut changed = sealed.clone();
            flip(changed.pointer_mut(&path).expect("a leaf"));
            let member = path.split('/').nth(1).expect("a member");
            match open(changed.to_string().as_bytes()) {
                Err(SealError::Altered { members }) => {
                    let named = match member {
                        // The member itself is as it was made: one of the two hashes is not.
                        "member_sha256" => path.split('/').nth(2).unwrap_or(member),
                        member => member,
                    };
                    assert!(
                        members.iter().any(|one| one == named),
                        "{path}: {members:?}"
                    );
                }
                other => panic!("{path}: {other:?}"),
            }
        }
    }
}

#[tokio::test]
async fn any_character_that_is_changed_is_found() {
    let body =
        json!({"input": "x", "questions": [{"type": "predicate", "instructions": "Is it?"}]});
    let sealed = receipt_of(&World::new(), DECISIONS, &body)
        .await
        .to_string();
    assert!(open(sealed.as_bytes()).is_ok() && sealed.is_ascii());
    for index in 0..sealed.len() {
        let mut changed = sealed.clone().into_bytes();
        changed[index] ^= 1;
        assert!(open(&changed).is_err(), "byte {index} of {sealed}");
        // A piece is no receipt either.
        assert!(open(&sealed.as_bytes()[..index]).is_err(), "{index} bytes");
    }
}

/// What a change is called whose author has made all hashes anew.
async fn forged(world: &World, sealed: &Value, path: &str) -> String {
    let mut changed = sealed.clone();
    flip(
        changed
            .pointer_mut(path)
            .unwrap_or_else(|| panic!("{path} in {sealed}")),
    );
    let members = changed.as_object_mut().expect("an object");
    members.shift_remove("receipt_sha256");
    members.shift_remove("member_sha256");
    let receipt: Receipt = match serde_json::from_value(changed) {
        Ok(receipt) => receipt,
        Err(error) => return error.to_string(),
    };
    let receipt = opened(&seal(&receipt));
    let identity = opened(sealed).identity();
    let checked =
        Replay::check_identity(&receipt, &identity).and_then(|()| replay(world, &receipt));
    match checked {
        Err(ReplayError::Different(difference)) => difference.place,
        Err(ReplayError::Impossible { place, .. }) => place,
        other => panic!("{path}: {other:?}"),
    }
}

#[tokio::test]
async fn a_forger_who_makes_the_hashes_anew_is_found_by_the_numbers() {
    let world = World::new();
    let identity = [
        ("/numerics", "numerics"),
        ("/kv", "kv"),
        ("/profile", "profile"),
        ("/model/sha256", "model.sha256"),
        ("/model/architecture", "model.architecture"),
        ("/tokenizer_sha256", "tokenizer_sha256"),
        ("/template_sha256", "template_sha256"),
        ("/prompt_format", "system_fingerprint"),
        ("/overrides/template_date", "system_fingerprint"),
        ("/system_fingerprint", "system_fingerprint"),
    ];
    let decision = receipt_of(&world, DECISIONS, &questions()).await;
    let decided = [
        (
            "/prompt_token_ids/0",
            "outputs[0].labels[0].logprob_bits[0]",
        ),
        (
            "/outputs/1/suffix_token_ids/0",
            "outputs[1].labels[0].logprob_bits[0]",
        ),
        ("/outputs/0/labels/1/token_ids/0", "outputs[0].labels"),
        (
            "/outputs/0/labels/1/logprob_bits/0",
            "outputs[0].labels[1].logprob_bits[0]",
        ),
        (
            "/outputs/0/labels/2/joint_bits",
            "outputs[0].labels[2].joint_bits",
        ),
        ("/outputs/0/label_mass_bits", "outputs[0].label_mass_bits"),
        (
            "/outputs/1/leaving_mass_bits",
            "outputs[1].leaving_mass_bits",
        ),
        ("/outputs/0/healed_bytes", "pairs of lowercase hex digits"),
        ("/end_token_ids/0", "outputs"),
        (
            "/distribution_bits/0/probability_bits/1",
            "distribution_bits[0].probability_bits[1]",
        ),
        (
            "/distribution_bits/0/readings/0/output",
            "distribution_bits[0]",
        ),
    ];
    for (path, place) in identity.iter().chain(&decided) {
        let found = forged(&world, &decision, path).await;
        assert!(found.contains(place), "{path}: {found}");
    }
    let drawn = receipt_of(&world, CHAT, &sampled()).await;
    for (path, place) in [
        ("/prompt_token_ids/3", "outputs[0].logprob_bits[0]"),
        ("/outputs/2/token_ids/1", "outputs[2].logprob_bits[1]"),
        ("/outputs/1/logprob_bits/4", "outputs[1].logprob_bits[4]"),
        ("/outputs/1/choice_index", "choice_index"),
        ("/outputs/1/finish_reason", "unknown variant"),
        ("/sampling/seed", "token_ids"),
        ("/sampling/temperature_bits", ""),
        ("/sampling/num_choices", "sampling.num_choices"),
        ("/sampling/logit_bias_bits/0/0", "token_ids"),
    ] {
        if path == "/sampling/temperature_bits" {
            continue;
        }
        let found = forged(&world, &drawn, path).await;
        assert!(found.contains(place), "{path}: {found}");
    }
}

#[tokio::test]
async fn a_receipt_of_nothing_that_a_model_can_do_is_refused_without_harm() {
    let world = World::new();
    let drawn = receipt_of(&world, CHAT, &sampled()).await;
    let decision = receipt_of(&world, DECISIONS, &questions()).await;
    let rows = [
        (&drawn, "/prompt_token_ids", json!([])),
        (&drawn, "/prompt_token_ids/0", json!(u32::MAX)),
        (&drawn, "/outputs/0/token_ids", json!([])),
        (&drawn, "/outputs/0/token_ids/0", json!(u32::MAX)),
        (&drawn, "/outputs/0/logprob_bits", json!([])),
        (&drawn, "/sampling", Value::Null),
        (&drawn, "/sampling/num_choices", json!(u32::MAX)),
        (
            &drawn,
            "/sampling/temperature_bits",
            json!("7ff8000000000000"),
        ),
        (&drawn, "/sampling/top_p_bits", json!("0000000000000000")),
        (&drawn, "/sampling/constraint", json!("{\"shape\":1}")),
        (
            &drawn,
            "/sampling/reply_format/control_tags",
            json!([[1, "<x>"]]),
        ),
        (&drawn, "/sampling/stop", json!([""])),
        (&decision, "/outputs/0/labels", json!([])),
        (&decision, "/outputs/0/labels/0/token_ids", json!([])),
        (
            &decision,
            "/outputs/0/labels/0/token_ids/0",
            json!(u32::MAX),
        ),
        (&decision, "/outputs/0/labels/0/logprob_bits", json!([])),
        (&decision, "/outputs/0/healed_bytes", json!("00ff")),
        (&decision, "/end_token_ids", json!([])),
        (&decision, "/end_token_ids", json!([9, 3])),
        (&decision, "/prompt_token_ids", json!([])),
        (&decision, "/distribution_bits/0/readings", json!([])),
        (
            &decision,
            "/distribution_bits/0/readings/0/output",
            json!(u32::MAX),
        ),
        (&decision, "/distribution_bits/0/readings/0/prior", json!(1)),
        (
            &decision,
            "/distribution_bits/0/probability_bits",
            json!([]),
        ),
    ];
    for (sealed, path, value) in rows {
        let mut changed = sealed.clone();
        *changed.pointer_mut(path).expect("there") = value;
        let members = changed.as_object_mut().expect("an object");
        members.shift_remove("receipt_sha256");
        members.shift_remove("member_sha256");
        let receipt: Receipt = serde_json::from_value(changed).expect("well-formed");
        let checked = replay(&world, &receipt);
        assert!(
            matches!(
                checked,
                Err(ReplayError::Different(_) | ReplayError::Impossible { .. })
            ),
            "{path}: {checked:?}"
        );
    }
    // The engine is as it was.
    replay(&world, &opened(&drawn)).expect("identical");
}

#[tokio::test]
async fn a_stream_ends_with_its_receipt() {
    let world = World::new();
    let more = json!({"receipt": true, "stream": true});
    let counted = json!({"stream_options": {"include_usage": true}});
    for (path, body, options) in [
        (CHAT, sampled(), json!({})),
        (CHAT, sampled(), counted),
        (
            COMPLETIONS,
            json!({"prompt": "abc", "max_tokens": 4, "seed": 1}),
            json!({}),
        ),
    ] {
        let counts = options["stream_options"].is_object();
        let whole = receipt_of(&world, path, &body).await;
        let body = with(with(body, more.clone()), options);
        let answer = world.post_to(path, &body).await;
        let chunks = answer.data();
        let last = chunks.last().expect("chunks");
        assert_eq!(last["choices"], json!([]));
        assert_eq!(last["usage"].is_object(), counts);
        assert_eq!(last["receipt"]["outputs"], whole["outputs"]);
        let others = &chunks[..chunks.len() - 1];
        assert!(others.iter().all(|chunk| chunk.get("receipt").is_none()));
        replay(&world, &opened(&last["receipt"])).expect("identical");
    }
}

#[tokio::test]
async fn a_receipt_is_asked_for_by_true_or_by_the_server() {
    let world = World::new();
    let bodies = [
        (CHAT, ask("x")),
        (COMPLETIONS, json!({"prompt": "x"})),
        (RESPONSES, json!({"input": "x"})),
        (SCORE, json!({"query": "x", "items": ["y"]})),
        (DECISIONS, questions()),
        (DECIDE, json!({"state": "x", "schema": {"type": "boolean"}})),
    ];
    for (path, body) in &bodies {
        let bad = with(body.clone(), json!({"receipt": "yes"}));
        world.check_refused_by(path, &bad, "receipt").await;
        let without = world
            .post_to(path, &with(body.clone(), json!({"receipt": false})))
            .await;
        assert!(without.json().get("receipt").is_none(), "{path}");
    }
    let mut setup = Setup::default();
    setup.config.receipts = true;
    let generous = setup.build();
    for (path, body) in &bodies {
        let reply = generous.post_to(path, body).await.json();
        replay(&world, &opened(&reply["receipt"])).expect("identical");
    }
}

/// What asks for values has a row, whole, under the reply's name; text alone has none.
#[tokio::test]
async fn the_ledger_has_decisions_and_scored_replies() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ledger.sqlite");
    let mut setup = Setup::default();
    setup.config.ledger = Some(Ledger::open(&path).expect("a ledger"));
    let world = setup.build();
    let scored = [
        (DECISIONS, questions(), "id"),
        (
            DECIDE,
            json!({"state": "x", "schema": {"type": "boolean"}}),
            "id",
        ),
        (
            SYSTEM_ONE,
            json!({"state": "x", "questions": {"q": {"type": "noul", "instructions": "Is it?"}}}),
            "x_id",
        ),
        (SCORE, json!({"query": "x", "items": ["y"]}), "id"),
        (CHAT, with(ask("x"), json!({"logprobs": true})), "id"),
        (COMPLETIONS, json!({"prompt": "x", "logprobs": 1}), "id"),
    ];
    let mut ids = Vec::new();
    for (path, body, id) in &scored {
        let reply = world
            .post_to(path, body)
            .await
            .expect_status(StatusCode::OK)
            .json();
        assert!(
            reply.get("receipt").is_none(),
            "{path}: nobody asked for it"
        );
        ids.push((*path, reply[id].as_str().expect("a name").to_owned()));
    }
    world.reply(&ask("no scores")).await;
    let ledger = LedgerReader::open(&path).expect("a ledger");
    assert_eq!(ledger.latest(100).expect("rows").len(), scored.len());
    for (path, id) in ids {
        let row = ledger
            .find(&RowName::Text(id.clone()))
            .expect("read")
            .expect("a row");
        assert_eq!((row.entry.route.as_str(), row.entry.reply_id), (path, id));
        let receipt = open(row.entry.receipt.as_bytes()).expect("whole");
        replay(&world, &receipt).expect("identical");
    }
}

/// A row that cannot be written: no answer, streamed or not, and the server goes on.
#[tokio::test]
async fn an_answer_that_is_not_in_the_ledger_is_not_given() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ledger.sqlite");
    let ledger = Ledger::open(&path).expect("a ledger");
    // What a full disk does to an insert.
    let disk = rusqlite::Connection::open(&path).expect("opened");
    disk.execute_batch(
        "CREATE TRIGGER full BEFORE INSERT ON receipts BEGIN SELECT RAISE(ABORT, 'disk full'); END",
    )
    .expect("made");
    let mut setup = Setup::default();
    setup.config.ledger = Some(ledger);
    let world = setup.build();
    let scored = with(ask("x"), json!({"logprobs": true}));
    for (path, body) in [(DECISIONS, questions()), (CHAT, scored.clone())] {
        let answer = world.post_to(path, &body).await;
        let error = answer.error(StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(error["code"], "not_logged", "{error}");
    }
    let streamed = world
        .post(&with(scored.clone(), json!({"stream": true})))
        .await;
    let last = streamed.data().pop().expect("a chunk");
    assert_eq!(last["error"]["code"], "not_logged", "{last}");
    world.reply(&ask("text is not logged")).await;
    disk.execute_batch("DROP TRIGGER full").expect("dropped");
    world.reply(&scored).await;
    assert_eq!(
        LedgerReader::open(&path)
            .expect("a ledger")
            .latest(9)
            .expect("rows")
            .len(),
        1
    );
}

#[test]
fn a_database_of_something_else_is_no_ledger() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("other.sqlite");
    let other = rusqlite::Connection::open(&path).expect("opened");
    other.execute_batch("CREATE TABLE t (x)").expect("made");
    assert!(Ledger::open(&path).is_err());
    assert!(LedgerReader::open(&path).is_err());
    let text = folder.path().join("text");
    std::fs::write(
        &text,
        "not a database at all, but long enough to be read as one",
    )
    .expect("written");
    assert!(Ledger::open(&text).is_err());
    assert!(LedgerReader::open(&folder.path().join("none")).is_err());
}

#[tokio::test]
async fn a_replay_that_nobody_waits_for_ends_before_its_next_output() {
    let world = world(vocab::TEMPLATE);
    let body = json!({"query": "It is", "items": ["a", "b", "c"]});
    let receipt = opened(&receipt_of(&world, SCORE, &body).await);
    assert_eq!(receipt.outputs.len(), 3);
    let num_asked = std::cell::Cell::new(0);
    let replay = Replay {
        receipt: &receipt,
        engine: &world.engine,
        constraints: &|| ConstraintFactory::new(&vocab::tokenizer()),
        is_abandoned: &|| num_asked.replace(num_asked.get() + 1) > 0,
    };
    let error = replay.run().expect_err("given up");
    assert!(matches!(error, ReplayError::Abandoned), "{error}");
    assert_eq!(num_asked.get(), 2, "one output was computed");
}
