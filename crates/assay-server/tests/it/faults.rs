//! Faults that other servers have had and that no row of the contract names alone; `docs/faults.md` lists all of them.

use assay_engine::{EngineConfig, PrefixCache, Speculation};
use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::completions::{check_completion, complete, complete_prompt, list};
use crate::scored::{entries, scored};
use crate::stream::check_streams_alike;
use crate::vocab::{self, END};
use crate::world::{COMPLETIONS, Setup, World, ask, ask_ids, ask_message, order, with};

fn json_schema(schema: &Value) -> Value {
    json!({"structured_outputs": {"json": schema}})
}

/// The model wants to end at once and may not: the end token stands in every list, with its own value.
#[tokio::test]
async fn fault_3_a_masked_control_token_has_its_value_in_every_list() {
    let world = World::new();
    let null = json_schema(&json!({"const": null}));
    let reply = world
        .reply(&scored(with(ask_ids(&[]), null.clone()), 3))
        .await;
    assert_eq!(reply["choices"][0]["message"]["content"], "null");
    for entry in entries(&reply) {
        let first = &entry["top_logprobs"][0];
        assert_eq!(first["token"], "<|im_end|>", "{entry}");
        assert!(first["logprob"].as_f64().expect("a number") > -1.0);
    }
    let prompt = json!(format!("{}<|go|>", order(&[])));
    let more = json!({"logprobs": 1, "logprob_token_ids": [END, u32::from(b'n')]});
    let body = with(with(complete_prompt(&prompt), null.clone()), more);
    let reply = check_completion(&world, &body).await;
    assert_eq!(reply["choices"][0]["text"], "null");
    for top in list(&reply["choices"][0]["logprobs"]["top_logprobs"]) {
        assert!(top["<|im_end|>"].as_f64().expect("a number") > -1.0);
    }
    let processed = json!({"logprobs_mode": "processed"});
    let reply = world
        .reply(&scored(with(with(ask_ids(&[]), null), processed), 20))
        .await;
    for entry in entries(&reply) {
        let values = list(&entry["top_logprobs"]).iter();
        let values: Vec<_> = values.map(|top| top["logprob"].as_f64()).collect();
        assert_eq!((values.len(), values[0]), (20, Some(0.0)), "{entry}");
        assert!(values[1..].iter().all(|value| *value == Some(-9999.0)));
    }
}

/// A text that repeats itself, so that drafts are both right and wrong.
const REFRAIN: &str = "one two. one two. one two. one two, then three. one two. one two. one two.";

/// Whatever is guessed, in whichever mode of the scheduler: an entry for each token, from the model's own row. The stop
/// string holds text back, so that chunks carry several entries.
#[tokio::test]
async fn fault_13_fault_18_fault_91_fault_93_fault_95_fault_98_fault_99_drafts_move_no_entry() {
    let body = with(
        scored(ask(REFRAIN), 3),
        json!({"stop": ["one two. one two!"], "prompt_logprobs": 2}),
    );
    let mut replies = Vec::new();
    for speculation in [Speculation::Off, Speculation::Ngram] {
        for (max_num_batched_tokens, prefix_cache) in [
            (512, PrefixCache::On),
            (16, PrefixCache::On),
            (512, PrefixCache::Off),
        ] {
            let engine = EngineConfig {
                speculation,
                max_num_batched_tokens,
                prefix_cache,
                ..EngineConfig::default()
            };
            let world = Setup {
                engine,
                ..Setup::default()
            }
            .build();
            let whole = world.reply(&body).await;
            assert_eq!(whole["choices"][0]["message"]["content"], REFRAIN);
            assert_eq!(entries(&whole).len(), REFRAIN.len());
            for entry in entries(&whole) {
                let value = entry["logprob"].as_f64().expect("a number");
                assert!(value < 0.0, "{entry}");
                assert_eq!(
                    entry["top_logprobs"][0]["logprob"], entry["logprob"],
                    "its own row: {entry}"
                );
            }
            let streamed = with(
                body.clone(),
                json!({"stream": true, "prompt_logprobs": null}),
            );
            let chunks = world.post(&streamed).await.data();
            let sizes = chunks.iter().filter_map(|chunk| {
                let content = chunk["choices"][0]["logprobs"]["content"].as_array();
                content.map(Vec::len)
            });
            assert!(
                sizes.clone().max() > Some(1),
                "a chunk with several entries"
            );
            assert_eq!(sizes.sum::<usize>(), REFRAIN.len());
            let collected = crate::stream::collect(&chunks);
            assert_eq!(
                collected["choices"][0]["logprobs"],
                whole["choices"][0]["logprobs"]
            );
            let accepted = world.engine.stats().num_accepted_tokens;
            assert_eq!(accepted > 0, speculation == Speculation::Ngram);
            replies.push(whole["choices"].to_string());
        }
    }
    replies.dedup();
    assert_eq!(replies.len(), 1, "no draft, chunk or cache shows");
}

#[tokio::test]
async fn fault_19_a_words_leading_space_is_kept_everywhere() {
    const WORLD: u32 = 257;
    let world = World::new();
    assert_eq!(vocab::bytes(WORLD), b" world");
    let reply = world.reply(&scored(ask_ids(&[WORLD]), 1)).await;
    let entry = &entries(&reply)[0];
    for spelled in [entry, &entry["top_logprobs"][0]] {
        assert_eq!(spelled["token"], " world");
        assert_eq!(spelled["bytes"], json!(b" world"));
    }
    let prompt = json!(format!("{}<|go|>", order(&[WORLD])));
    let body = with(complete_prompt(&prompt), json!({"logprobs": 1}));
    let reply = check_completion(&world, &body).await;
    let logprobs = &reply["choices"][0]["logprobs"];
    assert_eq!(logprobs["tokens"], json!([" world"]));
    assert!(logprobs["top_logprobs"][0].get(" world").is_some());
}

/// A narrow nucleus leaves one token to draw from; the values are the whole row's, or the sentinel where asked.
#[tokio::test]
async fn fault_109_fault_110_truncation_leaves_no_value_that_json_cannot_hold() {
    let world = World::new();
    let narrow = json!({"temperature": 0.01, "top_p": 0.3, "max_tokens": 4});
    for (mode, sentinels) in [("raw", 0), ("processed", 9)] {
        let narrow = with(narrow.clone(), json!({"logprobs_mode": mode}));
        let chat = with(scored(ask("four"), 10), narrow.clone());
        let reply = world.reply(&chat).await;
        for entry in entries(&reply) {
            let values: Vec<f64> = list(&entry["top_logprobs"])
                .iter()
                .map(|top| top["logprob"].as_f64().expect("a finite number"))
                .collect();
            let num_sentinels = values.iter().filter(|value| **value == -9999.0).count();
            assert_eq!((values.len(), num_sentinels), (10, sentinels), "{entry}");
        }
        let completion = with(complete("four"), with(narrow, json!({"logprobs": 5})));
        let reply = check_completion(&world, &completion).await;
        for top in list(&reply["choices"][0]["logprobs"]["top_logprobs"]) {
            let values = top.as_object().expect("a dictionary").values();
            let finite = values.map(|value| value.as_f64().expect("a finite number"));
            let num_sentinels = finite.filter(|value| *value == -9999.0).count();
            assert_eq!(num_sentinels, sentinels.min(4), "{top}");
        }
    }
}

/// What the model would write, and whether a schema lets it.
struct SchemaCase {
    name: &'static str,
    schema: Value,
    allowed: &'static [&'static str],
    kept_out: &'static [&'static str],
}

fn schema_cases() -> Vec<SchemaCase> {
    let b_required = |b: Value, more: Value| {
        with(
            json!({"type": "object", "properties": {
                "a": {"type": "array", "items": {"type": "integer"}}, "b": b,
            }, "required": ["b"]}),
            more,
        )
    };
    vec![
        SchemaCase {
            name: "129: a reference into items",
            schema: b_required(
                json!({"$ref": "#/properties/a/items"}),
                json!({"additionalProperties": false}),
            ),
            allowed: &[r#"{"b":1}"#, r#"{"a":[1,2],"b":3}"#],
            kept_out: &[r#"{"b":"x"}"#, r#"{"b":[1]}"#],
        },
        SchemaCase {
            name: "131: members are open by default",
            schema: b_required(json!({"type": "integer"}), json!({})),
            allowed: &[r#"{"b":1,"c":"x"}"#],
            kept_out: &[r#"{"c":"x"}"#],
        },
        SchemaCase {
            name: "131, 133: and closed where told",
            schema: b_required(
                json!({"type": "integer"}),
                json!({"additionalProperties": false}),
            ),
            allowed: &[r#"{"b":1}"#],
            kept_out: &[r#"{"b":1,"c":"x"}"#],
        },
        SchemaCase {
            name: "134: an escape is one character",
            schema: json!({"type": "string", "maxLength": 3}),
            allowed: &[r#""\"\"\"""#, r#""a\nb""#],
            kept_out: &[r#""abcd""#],
        },
        SchemaCase {
            name: "135: ranges beyond ASCII",
            schema: json!({"type": "string", "pattern": "^[а-я]+$"}),
            allowed: &[r#""привет""#],
            kept_out: &[r#""hello""#, r#""Привет""#],
        },
        SchemaCase {
            name: "137, 139: options beyond ASCII, as they are",
            schema: json!({"enum": ["größer", "é", "日本"]}),
            allowed: &[r#""größer""#, r#""é""#, r#""日本""#],
            kept_out: &[r#""grosser""#, r#""e""#],
        },
        SchemaCase {
            name: "138: strings are JSON's",
            schema: json!({"type": "string"}),
            allowed: &[r#""a\u001fb \\ 日""#],
            kept_out: &["\"a\u{1}\"", "\"a\nb\"", r#""\x41""#],
        },
    ]
}

#[tokio::test]
async fn fault_129_fault_131_fault_133_fault_134_fault_135_fault_137_fault_138_fault_139_schemas() {
    let world = World::new();
    for case in schema_cases() {
        let asked = |text: &str| {
            let more = with(json_schema(&case.schema), json!({"max_tokens": 40}));
            with(ask(text), more)
        };
        for text in case.allowed {
            let reply = check_streams_alike(&world, &scored(asked(text), 0)).await;
            let choice = &reply["choices"][0];
            assert_eq!(choice["message"]["content"], *text, "{}", case.name);
            assert_eq!(choice["finish_reason"], "stop", "{}", case.name);
        }
        for text in case.kept_out {
            let reply = world.reply(&asked(text)).await;
            let content = reply["choices"][0]["message"]["content"].as_str();
            let content = content.expect("text");
            assert!(!content.starts_with(text), "{}: {content:?}", case.name);
        }
    }
}

#[tokio::test]
async fn fault_130_large_bounds_are_kept_or_refused_by_keyword() {
    let world = World::new();
    let long = format!("\"{}\"", "a".repeat(600));
    let bounded = |limit: u64| json_schema(&json!({"type": "string", "maxLength": limit}));
    let reply = world.reply(&with(ask(&long), bounded(10_000))).await;
    assert_eq!(reply["choices"][0]["message"]["content"], long);
    let reply = world.reply(&with(ask(&long), bounded(500))).await;
    let content = reply["choices"][0]["message"]["content"].as_str();
    assert_eq!(content.map(str::len), Some(502), "cut where it must end");
    let nested = json!({"type": "string", "pattern": "^((a{1,100}){1,100}){1,100}$"});
    let answer = world.post(&with(ask("\"aa\""), json_schema(&nested))).await;
    if answer.status != StatusCode::OK {
        let error = answer.error(StatusCode::BAD_REQUEST);
        assert_eq!(error["param"], "structured_outputs.json", "{error}");
    }
}

/// A stop string wins over the schema and is told; an end token is drawn only where the text may end.
#[tokio::test]
async fn fault_141_an_unfinished_object_is_told_by_its_stop_reason() {
    let world = World::new();
    let object = json_schema(&json!({
        "type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
        "additionalProperties": false,
    }));
    let body = with(ask(r#"{"a":"xSTOPy"}"#), object.clone());
    let stopped =
        check_streams_alike(&world, &scored(with(body, json!({"stop": "STOP"})), 1)).await;
    let choice = &stopped["choices"][0];
    assert_eq!(choice["message"]["content"], r#"{"a":"x"#);
    assert_eq!(choice["finish_reason"], "stop");
    assert_eq!(choice["stop_reason"], "STOP");
    // The model wants to end at once; it may not before the object does.
    let forced = with(with(ask_ids(&[]), object), json!({"max_tokens": 3_000}));
    let reply = world.reply(&forced).await;
    let choice = &reply["choices"][0];
    let content = choice["message"]["content"].as_str().expect("text");
    if choice["finish_reason"] == "stop" {
        let value: Value = serde_json::from_str(content).expect("a whole object");
        assert!(value["a"].is_string(), "{content}");
        assert_eq!(choice["stop_reason"], Value::Null);
    } else {
        assert_eq!(choice["finish_reason"], "length", "{content}");
    }
}

/// A bias on top of a mask moves what is drawn, never whether something can be; ids that name a report mask nothing.
#[tokio::test]
async fn fault_142_masks_biases_and_named_ids_combine() {
    let world = World::new();
    let choice = json!({"structured_outputs": {"choice": ["yes", "no"]}});
    let bias = json!({"logit_bias": {"121": -100, "101": -100, "115": -100}});
    let body = with(with(ask("yes"), choice.clone()), bias);
    let reply = world.reply(&scored(body, 2)).await;
    assert_eq!(reply["choices"][0]["message"]["content"], "no");
    let all = json!({"logit_bias": {"121": -100, "110": -100, "101": -100, "111": -100}});
    let body = with(with(ask("yes"), choice.clone()), all);
    let reply = world.reply(&scored(body, 2)).await;
    let content = reply["choices"][0]["message"]["content"].as_str();
    assert!(["yes", "no"].map(Some).contains(&content), "{reply}");
    for entry in entries(&reply) {
        assert!(entry["logprob"].as_f64().is_some_and(f64::is_finite));
    }
    let named = json!({"logprobs": true, "allowed_token_ids": [65, 66]});
    let reply = world.reply(&with(with(ask("yes"), choice), named)).await;
    assert_eq!(reply["choices"][0]["message"]["content"], "yes");
}

/// One request per kind of row in one batch: each has what it gets alone.
#[tokio::test]
async fn fault_101_fault_103_reports_of_every_kind_share_a_batch() {
    let world = World::new();
    let free = |more: Value| {
        let sampled = json!({"max_tokens": 12, "temperature": 1, "seed": 5});
        with(with(ask_message("free"), sampled), more)
    };
    let bodies = [
        free(json!({})),
        free(json!({"logprobs": true})),
        free(json!({"logprobs": true, "top_logprobs": 20})),
        free(json!({"logprobs": true, "allowed_token_ids": [1, 99, 250]})),
        free(
            json!({"logprobs": true, "top_logprobs": 2, "logprobs_mode": "processed", "top_k": 3}),
        ),
        free(json!({"prompt_logprobs": 3})),
        free(json!({"logprobs": true, "structured_outputs": {"regex": "[a-z]{12}"}})),
        free(json!({"logit_bias": {"7": 5.5}, "logprobs": true, "n": 2})),
    ];
    let mut alone = Vec::new();
    for body in &bodies {
        alone.push(world.reply(body).await["choices"].to_string());
    }
    for _ in 0..3 {
        let together = bodies.iter().map(|body| world.reply(body));
        let together = futures_util::future::join_all(together).await;
        for (index, reply) in together.iter().enumerate() {
            assert_eq!(
                reply["choices"].to_string(),
                alone[index],
                "{}",
                bodies[index]
            );
        }
    }
}

/// The beginning of a stream of an echo says where it stands, in characters, and goes on counting.
#[tokio::test]
async fn fault_73_fault_75_streamed_echoes_count_characters_from_the_prompts_start() {
    let world = World::new();
    let prompt = json!(format!(
        "é日🙂{}<|go|>",
        order(&vocab::encode("ü!".as_bytes()))
    ));
    let more = json!({"echo": true, "logprobs": 1, "stream": true});
    let body = with(complete_prompt(&prompt), more);
    let chunks = world.post_to(COMPLETIONS, &body).await.data();
    let mut expected = 0;
    for chunk in &chunks {
        let logprobs = &chunk["choices"][0]["logprobs"];
        let Some(offsets) = logprobs["text_offset"].as_array() else {
            continue;
        };
        for (offset, token) in offsets.iter().zip(list(&logprobs["tokens"])) {
            assert_eq!(*offset, json!(expected), "{chunk}");
            expected += token.as_str().expect("text").chars().count();
        }
    }
    let prompt = prompt.as_str().expect("text");
    assert_eq!(expected, prompt.chars().count() + 2);
}
