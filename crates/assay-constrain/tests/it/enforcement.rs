//! What schemas let through: texts that are valid, against texts that are not.

use serde_json::{Value, json};

use crate::vocabulary::{Walk, factory, vocabulary, walk};

/// Each text in `accepted` is complete, each in `refused` is not, whether spelt in bytes or pieces.
fn check_texts(name: &str, schema: &Value, accepted: &[&str], refused: &[&str]) {
    let constraint = factory()
        .compile_json_schema(schema)
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let vocabulary = vocabulary();
    for (texts, is_accepted) in [(accepted, true), (refused, false)] {
        for text in texts {
            let bytes: Vec<u32> = text.bytes().map(u32::from).collect();
            for token_ids in [bytes, vocabulary.encode(text.as_bytes())] {
                let outcome = walk(&constraint, &token_ids);
                assert_eq!(
                    outcome == Walk::Complete,
                    is_accepted,
                    "{name}: {text:?} as {token_ids:?}: {outcome:?}"
                );
            }
        }
    }
}

#[test]
fn any_object_is_json_mode() {
    check_texts(
        "json_object",
        &json!({"type": "object"}),
        &[
            "{}",
            r#"{"a":1}"#,
            "{ \"a\" : [1, {\"b\": null}] }",
            r#"{"ü":-1.5e3}"#,
        ],
        &[
            "[]",
            "1",
            "{",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{'a':1}"#,
            " {}",
            "{}x",
            r#"{"a":01}"#,
        ],
    );
}

/// Faults 134, 137, 138, 139.
#[test]
fn fault_134_fault_137_fault_138_fault_139_strings_are_strict_json() {
    check_texts(
        "unbounded",
        &json!({"type": "string"}),
        &[r#""""#, r#""a\"b\\c\n""#, r#""Grüße 中 🙂""#, r#""\u001f""#],
        &[
            "\"\u{1}\"",
            "\"a\nb\"",
            r#""\x41""#,
            r#""\""#,
            r#""\u12""#,
            "'a'",
        ],
    );
    check_texts(
        "escapes count as one character",
        &json!({"type": "string", "minLength": 2, "maxLength": 3}),
        &[
            r#""ab""#,
            r#""\"\"\"""#,
            r#""üöä""#,
            r#""🙂🙂🙂""#,
            r#""\n\\""#,
        ],
        &[
            r#""a""#,
            r#""abcd""#,
            r#""üöäü""#,
            r#""\"\"\"\"""#,
            r#""\n""#,
        ],
    );
    check_texts(
        "enum beyond ASCII",
        &json!({"enum": ["Müller", "é", "中", 1, null]}),
        &[r#""Müller""#, r#""é""#, r#""中""#, "1", "null"],
        &[r#""Muller""#, r#""e""#, "2", r#""Müll""#],
    );
    check_texts(
        "enum with a quote",
        &json!({"enum": ["a\"b"]}),
        &[r#""a\"b""#],
        &[r#""a"b""#, r#""ab""#],
    );
}

/// Fault 135.
#[test]
fn fault_135_patterns_range_over_characters() {
    check_texts(
        "Cyrillic",
        &json!({"type": "string", "pattern": "^[а-я]+$"}),
        &[r#""привет""#],
        &[r#""Привет""#, r#""hello""#, r#""""#],
    );
    check_texts(
        "unanchored",
        &json!({"type": "string", "pattern": "[0-9]{2}"}),
        &[r#""a12b""#, r#""12""#],
        &[r#""a1b""#],
    );
}

#[test]
fn numbers_keep_their_bounds() {
    check_texts(
        "integer",
        &json!({"type": "integer", "minimum": -2, "exclusiveMaximum": 12}),
        &["-2", "0", "11"],
        &["-3", "12", "1.5", "011"],
    );
    check_texts(
        "number",
        &json!({"type": "number", "minimum": 0, "maximum": 1}),
        &["0", "0.25", "1"],
        &["-0.5", "1.1", "2"],
    );
}

/// Fault 131: the default is JSON Schema's, more members are allowed.
#[test]
fn fault_131_fault_133_objects_mean_what_json_schema_says() {
    let closed = json!({
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "boolean"}},
        "required": ["a"],
        "additionalProperties": false
    });
    check_texts(
        "closed",
        &closed,
        &[r#"{"a":1}"#, r#"{"a":1,"b":true}"#, "{\n  \"a\": 1\n}"],
        &[
            "{}",
            r#"{"b":true}"#,
            r#"{"a":1,"c":2}"#,
            r#"{"a":"1"}"#,
            r#"{"a":1,}"#,
            "{\n\n\"a\": 1}",
            "{  \"a\": 1}",
        ],
    );
    check_texts(
        "open",
        &json!({"type": "object", "properties": {"a": {"type": "integer"}}}),
        &["{}", r#"{"a":1,"c":"x"}"#, r#"{"c":2}"#],
        &[r#"{"a":"x"}"#],
    );
}

/// Fault 129.
#[test]
fn fault_129_references_are_followed_wherever_they_point() {
    check_texts(
        "into items",
        &json!({
            "type": "object",
            "properties": {
                "a": {"type": "array", "items": {"type": "integer"}},
                "b": {"$ref": "#/properties/a/items"}
            },
            "required": ["b"],
            "additionalProperties": false
        }),
        &[r#"{"b":1}"#, r#"{"a":[1,2],"b":3}"#],
        &[r#"{"b":"x"}"#, r#"{"b":[1]}"#],
    );
    check_texts(
        "recursive",
        &json!({
            "$ref": "#/$defs/tree",
            "$defs": {"tree": {
                "type": "object",
                "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
                "required": ["kids"],
                "additionalProperties": false
            }}
        }),
        &[
            r#"{"kids":[]}"#,
            r#"{"kids":[{"kids":[]},{"kids":[{"kids":[]}]}]}"#,
        ],
        &["{}", r#"{"kids":[1]}"#],
    );
    check_texts(
        "escaped",
        &json!({
            "anyOf": [{"$ref": "#/$defs/a~1b"}, {"$ref": "#/$defs/c%20d"}],
            "$defs": {"a/b": {"type": "null"}, "c d": {"const": 7}}
        }),
        &["null", "7"],
        &["8", "true"],
    );
    check_texts(
        "a property that is called $ref",
        &json!({
            "type": "object",
            "properties": {"$ref": {"type": "null"}},
            "required": ["$ref"]
        }),
        &[r#"{"$ref":null}"#],
        &["{}", r#"{"$ref":1}"#],
    );
}

#[test]
fn choices_and_lists() {
    check_texts(
        "anyOf",
        &json!({"anyOf": [{"type": "null"}, {"type": "array", "items": {"type": "boolean"},
            "minItems": 1, "maxItems": 2}]}),
        &["null", "[true]", "[true, false]"],
        &["[]", "[true,true,true]", "[null]"],
    );
    check_texts(
        "oneOf told apart by a constant",
        &json!({"oneOf": [
            {"type": "object", "properties": {"k": {"const": "a"}, "x": {"type": "null"}},
             "required": ["k", "x"], "additionalProperties": false},
            {"type": "object", "properties": {"k": {"const": "b"}},
             "required": ["k"], "additionalProperties": false}
        ]}),
        &[r#"{"k":"a","x":null}"#, r#"{"k":"b"}"#],
        &[r#"{"k":"a"}"#, r#"{"k":"b","x":null}"#, r#"{"k":"c"}"#],
    );
    check_texts(
        "keywords that say nothing",
        &json!({"type": "null", "title": "t", "uniqueItems": false, "x-vendor": [1],
            "x-guidance": {"lenient": true}}),
        &["null"],
        &["1"],
    );
    check_texts(
        "everything",
        &json!(true),
        &["1", "null", "[]", "{}"],
        &["x", ""],
    );
}

/// What the compiler's own grammars of formats let through.
#[test]
fn dates_and_times_are_those_that_there_are() {
    check_texts(
        "date",
        &json!({"type": "string", "format": "date"}),
        &[
            r#""2024-02-29""#,
            r#""2000-02-29""#,
            r#""2023-02-28""#,
            r#""1999-12-31""#,
        ],
        &[
            r#""2023-02-29""#,
            r#""1900-02-29""#,
            r#""2024-02-30""#,
            r#""2024-04-31""#,
            r#""2024-00-01""#,
            r#""2024-13-01""#,
            r#""2024-01-32""#,
        ],
    );
    check_texts(
        "time",
        &json!({"type": "string", "format": "time"}),
        &[
            r#""23:59:59Z""#,
            r#""23:59:60Z""#,
            r#""01:29:60.5+01:30""#,
            r#""15:59:60-08:00""#,
            r#""00:59:60+01:00""#,
        ],
        &[
            r#""24:00:00Z""#,
            r#""23:60:00Z""#,
            r#""22:59:60Z""#,
            r#""23:58:60Z""#,
            r#""01:30:60+01:30""#,
            r#""15:59:60-07:00""#,
            r#""12:00:61Z""#,
        ],
    );
    check_texts(
        "date-time with a pattern of its own",
        &json!({"type": "string", "format": "date-time", "pattern": "Z$"}),
        &[r#""2024-02-29T23:59:60Z""#, r#""2023-01-31T00:00:00.25Z""#],
        &[
            r#""2023-02-29T12:00:00Z""#,
            r#""2024-02-29T22:59:60Z""#,
            r#""2024-02-29T12:00:00+01:00""#,
            r#""2024-02-29T24:00:00Z""#,
        ],
    );
}
