//! `/v1/decide`: schemas filled in with joint probabilities.

use serde_json::{Value, json};

use crate::completions::list;
use crate::decisions::{DECIDE, STATE, decide};
use crate::scored::bits;
use crate::world::World;

async fn fill(world: &World, schema: &Value, beams: usize) -> Value {
    let body = json!({"state": STATE, "schema": schema, "search": {"beams": beams}});
    let reply = decide(world, DECIDE, &body).await;
    check_reply(&reply);
    reply
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

/// What holds of every reply: distributions sum to 1, the answer's probability is the product of its fields', and
/// instances come likeliest first.
fn check_reply(reply: &Value) {
    let mut product = 1.0;
    for field in list(&reply["fields"]) {
        let distribution = list(&field["distribution"]);
        let sum: f64 = distribution
            .iter()
            .map(|pair| number(&pair["probability"]))
            .sum();
        assert!((sum - 1.0).abs() < 1e-9, "{sum}");
        let own = distribution
            .iter()
            .find(|pair| pair["value"] == field["value"])
            .expect("listed");
        assert_eq!(bits(&own["probability"]), bits(&field["probability"]));
        product *= number(&field["probability"]);
    }
    assert_eq!(product.to_bits(), bits(&reply["probability"]));
    let instances = list(&reply["instances"]);
    assert_eq!(instances[0]["value"], reply["answer"]);
    let probabilities: Vec<f64> = instances
        .iter()
        .map(|one| number(&one["probability"]))
        .collect();
    assert!(probabilities.is_sorted_by(|a, b| a >= b));
}

fn total(reply: &Value) -> f64 {
    let instances = list(&reply["instances"]).iter();
    instances
        .map(|one| number(&one["probability"]))
        .sum::<f64>()
        + number(&reply["unexplored_mass"])
}

#[tokio::test]
async fn integers_have_their_whole_distribution() {
    let world = World::new();
    let schema =
        json!({"type": "integer", "minimum": -3, "maximum": 120, "description": "How many?"});
    let reply = fill(&world, &schema, 8).await;
    let field = &reply["fields"][0];
    let distribution = list(&field["distribution"]);
    let values: Vec<i64> = distribution
        .iter()
        .map(|pair| pair["value"].as_i64().expect("an integer"))
        .collect();
    assert_eq!(values, (-3..=120).collect::<Vec<i64>>());
    let p: Vec<f64> = distribution
        .iter()
        .map(|pair| number(&pair["probability"]))
        .collect();
    let mean: f64 = values
        .iter()
        .zip(&p)
        .map(|(value, p)| *value as f64 * p)
        .sum();
    assert!((number(&field["summary"]["mean"]) - mean).abs() < 1e-9);
    let reaches = |share: f64| {
        let mut below = 0.0;
        values.iter().zip(&p).find(|(_, p)| {
            below += **p;
            below >= share
        })
    };
    let median = reaches(0.5).map(|(value, _)| *value);
    assert_eq!(field["summary"]["median"].as_i64(), median);
    assert_eq!(
        field["summary"]["quantiles"]["p95"].as_i64(),
        reaches(0.95).map(|(value, _)| *value)
    );
    let most = p.iter().copied().fold(0.0, f64::max);
    assert_eq!(most.to_bits(), bits(&reply["probability"]));
}

#[tokio::test]
async fn numbers_and_dates_have_one_spelling_each() {
    let world = World::new();
    let cases = [
        (
            json!({"type": "number", "minimum": -0.1, "exclusiveMaximum": 0.2, "multipleOf": 0.05}),
            None,
        ),
        (
            json!({"type": "number", "minimum": -0.1, "exclusiveMaximum": 0.1, "multipleOf": 0.1}),
            Some((vec!["-0.1", "0.0"], json!([-0.1, 0.0]))),
        ),
        (
            json!({"type": "number", "minimum": 0.98, "maximum": 1.02, "multipleOf": 0.01}),
            Some((
                vec!["0.98", "0.99", "1.00", "1.01", "1.02"],
                json!([0.98, 0.99, 1.0, 1.01, 1.02]),
            )),
        ),
        (
            json!({"type": "number", "minimum": 0, "maximum": 30, "multipleOf": 10}),
            Some((vec!["0", "10", "20", "30"], json!([0, 10, 20, 30]))),
        ),
        (
            json!({"type": "integer", "exclusiveMinimum": -10, "maximum": 11, "multipleOf": 7}),
            Some((vec!["-7", "0", "7"], json!([-7, 0, 7]))),
        ),
        (
            json!({"type": "string", "format": "date", "formatMinimum": "2024-02-27", "formatMaximum": "2024-03-01"}),
            Some((
                vec!["2024-02-27", "2024-02-28", "2024-02-29", "2024-03-01"],
                json!(["2024-02-27", "2024-02-28", "2024-02-29", "2024-03-01"]),
            )),
        ),
    ];
    for (schema, expected) in cases {
        let body = json!({"state": STATE, "schema": schema, "diagnostics": true});
        let Some((texts, values)) = expected else {
            world
                .check_refused_by(DECIDE, &body, "schema.multipleOf")
                .await;
            continue;
        };
        let reply = decide(&world, DECIDE, &body).await;
        check_reply(&reply);
        let field = &reply["fields"][0];
        let found: Vec<&Value> = list(&field["distribution"])
            .iter()
            .map(|pair| &pair["value"])
            .collect();
        assert_eq!(json!(found), values);
        let labels: Vec<&Value> = list(&field["diagnostics"]["labels"])
            .iter()
            .map(|label| &label["label"])
            .collect();
        assert_eq!(json!(labels), json!(texts));
    }
}

pub(crate) fn ticket() -> Value {
    json!({
        "type": "object",
        "title": "A ticket",
        "required": ["team", "urgent"],
        "additionalProperties": false,
        "properties": {
            "source": {"const": "mail"},
            "team": {"enum": ["billing", "tech", null, 7], "description": "Which team?"},
            "urgent": {"type": "boolean"},
            "where": {"type": "object", "properties": {"floor": {"type": "integer", "minimum": 1, "maximum": 3}}},
        },
    })
}

#[tokio::test]
async fn objects_follow_the_chain_rule_in_declared_order() {
    let world = World::new();
    let all = fill(&world, &ticket(), 64).await;
    assert_eq!(list(&all["instances"]).len(), 4 * 2 * 3);
    assert_eq!(all["unexplored_mass"], 0.0);
    assert!((total(&all) - 1.0).abs() < 1e-9);
    let answer = all["answer"].as_object().expect("an object");
    let names: Vec<&String> = answer.keys().collect();
    assert_eq!(names, ["source", "team", "urgent", "where"]);
    assert_eq!(answer["source"], "mail");
    let paths: Vec<&Value> = list(&all["fields"])
        .iter()
        .map(|field| &field["path"])
        .collect();
    assert_eq!(paths, ["/team", "/urgent", "/where/floor"]);

    // Fewer beams leave mass behind, say how much, and find no instance with another probability.
    for beams in [1, 2, 5] {
        let some = fill(&world, &ticket(), beams).await;
        assert!(number(&some["unexplored_mass"]) > 0.0);
        assert!(total(&some) <= 1.0 + 1e-9);
        for instance in list(&some["instances"]) {
            let same = list(&all["instances"])
                .iter()
                .find(|one| one["value"] == instance["value"]);
            assert_eq!(
                bits(&same.expect("known")["probability"]),
                bits(&instance["probability"])
            );
        }
    }
    // The first field is the same question as one that stands alone.
    let alone =
        json!({"enum": ["billing", "tech", null, 7], "description": "A ticket\n\nWhich team?"});
    let alone = fill(&world, &alone, 8).await;
    assert_eq!(
        alone["fields"][0]["distribution"],
        all["fields"][0]["distribution"]
    );
}

#[tokio::test]
async fn later_fields_are_asked_below_the_answers_before_them() {
    let world = World::new();
    let schema = json!({"type": "object", "properties": {
        "a": {"type": "boolean", "description": "Is it so?"},
        "b": {"type": "boolean", "description": "And this?"},
    }});
    let body = json!({"state": STATE, "schema": schema, "diagnostics": true});
    let reply = decide(&world, DECIDE, &body).await;
    let said = if reply["answer"]["a"] == true {
        "Yes"
    } else {
        "No"
    };
    let messages = json!([
        {"role": "user", "content": format!("Text: {STATE}\n\nQuestion: Is it so?\n\nReply with Yes or No only.")},
        {"role": "assistant", "content": said},
        {"role": "user", "content": "Question: And this?\n\nReply with Yes or No only."},
    ]);
    let scores = json!({"messages": messages, "items": ["Yes", "No"]});
    let scores = world.post_to("/v1/score", &scores).await.json();
    let labels = list(&reply["fields"][1]["diagnostics"]["labels"]);
    for (label, score) in labels.iter().zip(list(&scores["data"])) {
        let steps: Vec<u64> = list(&label["logprobs"]).iter().map(bits).collect();
        let expected: Vec<u64> = list(&score["token_logprobs"]).iter().map(bits).collect();
        assert_eq!(steps[..steps.len() - 1], expected);
    }
}

#[tokio::test]
async fn alternatives_ask_only_what_their_tag_brings() {
    let world = World::new();
    let one_of = json!({"oneOf": [
        {"type": "object", "properties": {"kind": {"const": "refund"}, "days": {"type": "integer", "minimum": 1, "maximum": 2}}, "required": ["kind"]},
        {"type": "object", "properties": {"sure": {"type": "boolean"}, "kind": {"const": "other"}}},
        {"type": "object", "properties": {"kind": {"const": "none"}}},
    ]});
    let reply = fill(&world, &one_of, 64).await;
    let mut found: Vec<String> = list(&reply["instances"])
        .iter()
        .map(|one| one["value"].to_string())
        .collect();
    found.sort();
    assert_eq!(
        found,
        [
            "{\"kind\":\"none\"}",
            "{\"kind\":\"other\",\"sure\":false}",
            "{\"kind\":\"other\",\"sure\":true}",
            "{\"kind\":\"refund\",\"days\":1}",
            "{\"kind\":\"refund\",\"days\":2}",
        ]
    );
    assert!((total(&reply) - 1.0).abs() < 1e-9);

    let condition = json!({
        "type": "object",
        "properties": {"kind": {"enum": ["a", "b"]}},
        "if": {"properties": {"kind": {"const": "a"}}, "required": ["kind"]},
        "then": {"properties": {"x": {"type": "boolean"}}},
        "else": {"properties": {"y": {"type": "integer", "minimum": 0, "maximum": 2}}},
    });
    let reply = fill(&world, &condition, 64).await;
    let instances = list(&reply["instances"]);
    assert_eq!(instances.len(), 2 + 3);
    for instance in instances {
        let value = &instance["value"];
        let (has, lacks) = if value["kind"] == "a" {
            ("x", "y")
        } else {
            ("y", "x")
        };
        assert!(
            value.get(has).is_some() && value.get(lacks).is_none(),
            "{value}"
        );
    }
    assert!((total(&reply) - 1.0).abs() < 1e-9);
}

#[tokio::test]
async fn subsets_are_chains_that_end() {
    let world = World::new();
    for (min_items, max_items, count) in [(0, 3, 8), (1, 2, 6), (2, 2, 3), (3, 3, 1)] {
        let schema = json!({
            "type": "array", "uniqueItems": true, "items": {"enum": ["red", 2, true]},
            "minItems": min_items, "maxItems": max_items, "description": "Which colours?",
        });
        let reply = fill(&world, &schema, 64).await;
        assert_eq!(list(&reply["instances"]).len(), count, "{schema}");
        assert!((total(&reply) - 1.0).abs() < 1e-9);
        for instance in list(&reply["instances"]) {
            let size = list(&instance["value"]).len();
            assert!((min_items..=max_items).contains(&size), "{instance}");
        }
    }
}

#[tokio::test]
async fn d10_schemas_that_cannot_be_honoured_are_refused_by_keyword_and_path() {
    let world = World::new();
    let property = |schema: Value| json!({"type": "object", "properties": {"a": schema}});
    let integer = |more: Value| {
        crate::world::with(json!({"type": "integer", "minimum": 0, "maximum": 9}), more)
    };
    let mut deep = json!({"type": "boolean"});
    for _ in 0..20 {
        deep = property(deep);
    }
    let cases = [
        (json!(null), "schema"),
        (json!(true), "schema"),
        (json!({}), "schema.type"),
        (json!({"type": "text"}), "schema.type"),
        (json!({"type": ["string", "null"]}), "schema.type"),
        (json!({"type": "string"}), "schema.enum"),
        (json!({"type": "string", "maxLength": 5}), "schema.enum"),
        (
            json!({"type": "string", "format": "email"}),
            "schema.format",
        ),
        (
            json!({"type": "string", "format": "date"}),
            "schema.formatMinimum",
        ),
        (
            json!({"type": "string", "format": "date", "formatMinimum": "2023-02-29", "formatMaximum": "2024-01-01"}),
            "schema.formatMinimum",
        ),
        (
            json!({"type": "string", "format": "date", "formatMinimum": "2024-01-02", "formatMaximum": "2024-01-01"}),
            "schema",
        ),
        (json!({"type": "boolean", "minimum": 1}), "schema.minimum"),
        (json!({"$ref": "#/x"}), "schema.$ref"),
        (json!({"anyOf": [{"type": "boolean"}]}), "schema.anyOf"),
        (json!({"type": "boolean", "not": {}}), "schema.not"),
        (json!({"enum": ["a", {"b": 1}]}), "schema.enum"),
        (json!({"enum": [1, "1"]}), "schema.enum[1]"),
        (json!({"enum": ["a", 1], "type": "string"}), "schema.type"),
        (json!({"enum": []}), "schema.enum"),
        (json!({"const": [1]}), "schema.const"),
        (json!({"type": "integer"}), "schema.minimum"),
        (integer(json!({"minimum": 0.5})), "schema.minimum"),
        (integer(json!({"minimum": 10})), "schema"),
        (integer(json!({"maximum": 70_000})), "schema"),
        (integer(json!({"maximum": 1e30})), "schema.maximum"),
        (integer(json!({"multipleOf": 0})), "schema.multipleOf"),
        (integer(json!({"format": "int32"})), "schema.format"),
        (
            json!({"type": "number", "minimum": 0, "maximum": 1}),
            "schema.multipleOf",
        ),
        (
            json!({"type": "number", "minimum": 0.05, "maximum": 1, "multipleOf": 0.1}),
            "schema.minimum",
        ),
        (
            json!({"type": "array", "items": {"enum": [1, 2]}}),
            "schema.uniqueItems",
        ),
        (
            json!({"type": "array", "uniqueItems": true}),
            "schema.items",
        ),
        (
            json!({"type": "array", "uniqueItems": true, "items": {"type": "boolean"}}),
            "schema.items.enum",
        ),
        (
            json!({"type": "array", "uniqueItems": true, "items": {"enum": ["None", "x"]}}),
            "schema.items.enum",
        ),
        (
            json!({"type": "array", "uniqueItems": true, "items": {"enum": [1, 2]}, "minItems": 3}),
            "schema",
        ),
        (json!({"type": "object"}), "schema.properties"),
        (
            property(json!({"type": "string"})),
            "schema.properties.a.enum",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["b"]}),
            "schema.required",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "boolean"}}, "patternProperties": {}}),
            "schema.patternProperties",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "boolean"}}, "if": {"properties": {"b": {"const": 1}}}}),
            "schema.if",
        ),
        (
            json!({"oneOf": [{"type": "boolean"}, {"const": 1}]}),
            "schema.oneOf",
        ),
        (
            json!({"oneOf": [{"properties": {"k": {"const": 1}}, "type": "object"}, {"type": "object", "properties": {"k": {"const": 1}}}]}),
            "schema.oneOf",
        ),
    ];
    for (schema, param) in cases {
        let body = json!({"state": "x", "schema": schema});
        world.check_refused_by(DECIDE, &body, param).await;
    }
    let error = world
        .post_to(DECIDE, &json!({"state": "x", "schema": deep}))
        .await;
    let error = error.error(axum::http::StatusCode::BAD_REQUEST);
    assert!(
        error["message"].as_str().expect("a message").contains("16"),
        "{error}"
    );
    for (body, param) in [
        (json!({"schema": {"type": "boolean"}}), "messages"),
        (
            json!({"state": "x", "messages": [], "schema": {"type": "boolean"}}),
            "messages",
        ),
        (json!({"state": "x"}), "schema"),
        (
            json!({"state": "x", "schema": {"type": "boolean"}, "search": {"beams": 0}}),
            "search.beams",
        ),
        (
            json!({"state": "x", "schema": {"type": "boolean"}, "search": {"depth": 1}}),
            "search.depth",
        ),
    ] {
        world.check_refused_by(DECIDE, &body, param).await;
    }
    assert_eq!(world.engine.stats().num_steps, 0, "no work was done");
}
