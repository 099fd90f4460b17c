//! What cannot be enforced is refused when it is compiled, by keyword and path.

use std::fmt::Write as _;

use assay_constrain::{ConstraintError, ConstraintFactory};
use serde_json::{Value, json};

use crate::vocabulary::factory;

fn refusal(schema: &Value) -> ConstraintError {
    match factory().compile_json_schema(schema) {
        Ok(_) => panic!("{schema} was compiled"),
        Err(error) => error,
    }
}

/// The message names the keyword, and the error its path.
fn check_refused(schema: &Value, keyword: &str, path: &str) {
    let error = refusal(schema);
    assert_eq!(error.path(), path, "{schema}: {error}");
    let message = error.to_string();
    assert!(
        message.contains(keyword),
        "{schema}: {message:?} lacks {keyword}"
    );
    assert_eq!(message.lines().count(), 1, "{schema}: {message:?}");
}

#[test]
fn keywords_and_values_are_named() {
    let inside =
        |schema: Value| json!({"type": "object", "properties": {"a b": {"items": schema}}});
    let cases = [
        (json!({"not": {"type": "null"}}), "not", ""),
        (
            inside(json!({"if": true})),
            "if",
            r#".properties["a b"].items"#,
        ),
        (
            json!({"anyOf": [true, {"contains": {}}]}),
            "contains",
            ".anyOf[1]",
        ),
        (
            json!({"$defs": {"x": {"propertyNames": {}}}}),
            "propertyNames",
            ".$defs.x",
        ),
        (
            json!({"type": "array", "uniqueItems": true}),
            "uniqueItems",
            "",
        ),
        (
            json!({"unevaluatedProperties": false}),
            "unevaluatedProperties",
            "",
        ),
        (json!({"$ref": "#/$defs/none"}), "#/$defs/none", ""),
        (json!({"$ref": "https://example.com/x"}), "$ref", ""),
        (json!({"$ref": "#anchor"}), "#anchor", ""),
        (
            json!({"properties": {"a": {"$id": "x"}}}),
            "$id",
            ".properties.a",
        ),
        (json!({"$schema": "urn:own"}), "$schema", ""),
        (json!({"format": "iri"}), "iri", ""),
        (json!({"format": "unknown"}), "unknown", ""),
        (json!({"pattern": "*"}), "pattern", ""),
        (json!({"pattern": "("}), "pattern", ""),
        (json!({"pattern": "(a)\\1"}), "pattern", ""),
        (json!({"pattern": "(?=a)b"}), "pattern", ""),
        (
            json!({"patternProperties": {"(": {}}}),
            "patternProperties",
            "",
        ),
        (json!({"type": "text"}), "type", ""),
        (json!({"enum": []}), "enum", ""),
        (json!({"const": 9_007_199_254_740_993_u64}), "const", ""),
        (json!({"maxLength": -1}), "maxLength", ""),
        (json!({"multipleOf": 0}), "multipleOf", ""),
        (json!({"required": "a"}), "required", ""),
        (json!({"properties": {"a": 1}}), "schema", ".properties.a"),
        (
            json!({"prefixItems": [{}], "additionalItems": false}),
            "additionalItems",
            "",
        ),
        (
            json!({"oneOf": [{"type": "integer"}, {"type": "number"}]}),
            "oneOf",
            "",
        ),
        // Only reached through a reference, where no schema should stand.
        (json!({"$ref": "#/x", "x": {"not": true}}), "not", ".x"),
    ];
    for (schema, keyword, path) in cases {
        check_refused(&schema, keyword, path);
    }
}

#[test]
fn what_no_value_satisfies_is_refused() {
    for schema in [
        json!(false),
        json!({"allOf": [{"type": "null"}, {"type": "string"}]}),
        json!({"type": "string", "minLength": 3, "maxLength": 2}),
        // Every option needs another of itself.
        json!({"anyOf": [{"$ref": "#"}, {"$ref": "#/anyOf/0"}]}),
        json!({"$ref": "#/$defs/n", "$defs": {"n": {"oneOf": [
            {"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}}, "required": ["a"]},
            {"type": "array", "items": {"$ref": "#/$defs/n"}, "minItems": 1},
        ]}}}),
        json!({"$ref": "#"}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
    ] {
        let error = refusal(&schema);
        assert!(
            matches!(
                error,
                ConstraintError::Unsatisfiable { .. } | ConstraintError::Rejected { .. }
            ),
            "{schema}: {error:?}"
        );
    }
}

/// Faults 145, 147, 150.
#[test]
fn fault_145_fault_147_depth_and_size_are_bounded() {
    let nested = |levels: usize| (0..levels).fold(json!(true), |inner, _| json!({"items": inner}));
    assert!(factory().compile_json_schema(&nested(60)).is_ok());
    assert!(matches!(
        refusal(&nested(1000)),
        ConstraintError::TooDeep { .. }
    ));
    let long = json!({"description": "x".repeat(300_000)});
    assert!(matches!(refusal(&long), ConstraintError::TooLarge { .. }));

    let chain = |links: usize| {
        let mut text = String::from(r##"{"$ref":"#/$defs/d0","$defs":{"##);
        for link in 0..links {
            let next = link + 1;
            write!(text, r##""d{link}":{{"$ref":"#/$defs/d{next}"}},"##).expect("to a string");
        }
        write!(text, r#""d{links}":{{"type":"null"}}}}}}"#).expect("to a string");
        serde_json::from_str::<Value>(&text).expect("valid JSON")
    };
    // As deep as references may lead: carried by the compiler's own stack.
    assert!(factory().compile_json_schema(&chain(4000)).is_ok());
    assert!(matches!(
        refusal(&chain(5000)),
        ConstraintError::TooDeep { .. }
    ));

    let groups = json!({"pattern": format!("{}a{}", "(".repeat(60_000), ")".repeat(60_000))});
    check_refused(&groups, "pattern", "");
}

/// Fault 130: a large bound compiles or is refused; it never hangs.
#[test]
fn fault_130_large_bounds_end() {
    for schema in [
        json!({"type": "string", "maxLength": 10_000}),
        json!({"type": "array", "items": {"type": "integer"}, "maxItems": 10_000}),
        json!({"type": "string", "pattern": "^((a{1,100}){1,100}){1,100}$"}),
    ] {
        if let Err(error) = factory().compile_json_schema(&schema) {
            assert!(error.is_callers_fault(), "{schema}: {error:?}");
        }
    }
}

#[test]
fn a_vocabulary_without_an_end_is_refused() {
    let error = ConstraintFactory::from_token_bytes([Some(vec![b'a'])], &[]).expect_err("no end");
    assert_eq!(error, ConstraintError::NoEndToken);
}
