//! Masks keep their word: what they allow is accepted, a reply ends valid, and all of it is repeatable.

use assay_constrain::{Constraint, ConstraintFactory, MatchError, Matcher};
use proptest::prelude::*;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::vocabulary::{Walk, factory, vocabulary, walk};

fn schemas() -> [Value; 5] {
    [
        json!({"type": "object"}),
        json!({"type": "string", "minLength": 1, "maxLength": 5}),
        json!({"enum": ["ü", "\u{1f642}", "a\"b", -1.5, null, {"k": [true]}]}),
        json!({"type": "object", "properties": {"a": {"type": "number"}, "ü": {"$ref": "#"}},
            "additionalProperties": false, "minProperties": 1}),
        json!({"type": "array", "items": {"anyOf": [{"type": "integer"}, {"format": "date",
            "type": "string"}]}, "minItems": 1, "maxItems": 3}),
    ]
}

/// Draws from masks with a counter-based choice until the end token; the text and whether it ended.
fn random_reply(constraint: &Constraint, seed: u64, max_tokens: u64) -> (Vec<u32>, bool) {
    let end = vocabulary().end_token_id();
    let mut matcher = Matcher::new(constraint);
    let mut token_ids = Vec::new();
    for index in 0..max_tokens {
        let mask = matcher.compute_mask().expect("a mask");
        assert_eq!(mask.iter().count(), mask.num_allowed(), "bits of the mask");
        assert_eq!(mask.allows(end), matcher.is_accepting().expect("a state"));
        let mixed = (seed ^ index).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let choice = (mixed >> 33) as usize % mask.num_allowed();
        // An end is rarely drawn by chance; take it every other time it is there.
        let token_id = if mask.allows(end) && mixed & 1 == 0 {
            end
        } else {
            mask.iter().nth(choice).expect("a token of the mask")
        };
        matcher
            .accept(token_id)
            .unwrap_or_else(|error| panic!("after {token_ids:?}: {token_id} of the mask: {error}"));
        if token_id == end {
            assert!(matcher.is_finished());
            return (token_ids, true);
        }
        token_ids.push(token_id);
    }
    (token_ids, false)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_a_mask_allows_is_accepted_and_ends_as_json(which in 0..5_usize, seed: u64) {
        let schema = &schemas()[which];
        let constraint = factory().compile_json_schema(schema).expect("enforceable");
        let (token_ids, has_ended) = random_reply(&constraint, seed, 120);
        let again = random_reply(&constraint, seed, 120);
        prop_assert_eq!(&again, &(token_ids.clone(), has_ended), "the same draws again");
        if has_ended {
            let vocabulary = vocabulary();
            let bytes: Vec<u8> = token_ids
                .iter()
                .flat_map(|&id| vocabulary.token_bytes()[id as usize].clone())
                .collect();
            let text = String::from_utf8(bytes).expect("valid UTF-8");
            // The grammar of JSON alone: a number such as 6e22578 is legal and no f64.
            prop_assert!(serde_json::from_str::<IgnoredAny>(&text).is_ok(), "{schema}: {text}");
        }
    }
}

#[test]
fn a_vocabulary_that_cannot_spell_it_is_an_error_and_no_hang() {
    let tokens = [Some(b"tru".to_vec()), Some(b"x".to_vec()), None];
    let factory = ConstraintFactory::from_token_bytes(tokens, &[2]).expect("an end token");
    let constraint = factory
        .compile_json_schema(&json!({"const": true}))
        .expect("it can begin");
    let mut matcher = Matcher::new(&constraint);
    matcher.accept(0).expect("`tru` begins it");
    assert_eq!(matcher.compute_mask(), Err(MatchError::EmptyMask));
    assert!(
        factory
            .compile_json_schema(&json!({"const": false}))
            .is_err(),
        "nothing begins it"
    );
}

#[test]
fn tokens_outside_the_mask_change_nothing() {
    let constraint = factory()
        .compile_json_schema(&json!({"const": 12}))
        .expect("enforceable");
    let end = vocabulary().end_token_id();
    let mut matcher = Matcher::new(&constraint);
    for refused in [end, u32::from(b'2'), 99_999] {
        let token_id = refused;
        assert_eq!(
            matcher.accept(token_id),
            Err(MatchError::NotAllowed { token_id })
        );
    }
    matcher.accept(u32::from(b'1')).expect("the first digit");
    matcher.accept(u32::from(b'2')).expect("the second digit");
    assert!(matcher.is_finished(), "nothing may follow 12");
    let mask = matcher.compute_mask().expect("the end");
    assert_eq!(mask.iter().collect::<Vec<_>>(), [end]);
    matcher.accept(end).expect("the end");
}

/// The limits of a step leave room for what is large and plain.
#[test]
fn a_large_plain_schema_stays_within_the_limits() {
    let names: Vec<String> = (0..400).map(|index| format!("name{index}")).collect();
    let properties: serde_json::Map<_, _> = names
        .iter()
        .map(|name| (name.clone(), json!({"type": ["integer", "null"]})))
        .collect();
    let schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
    let constraint = factory().compile_json_schema(&schema).expect("a schema");
    for text in ["{}", "{\n  \"name7\": 1,\n  \"name399\": null\n}"] {
        let token_ids: Vec<u32> = text.bytes().map(u32::from).collect();
        assert_eq!(walk(&constraint, &token_ids), Walk::Complete, "{text}");
    }
}

#[test]
fn structure_is_never_text() {
    let tokens = (0..=255_u8)
        .map(|byte| Some(vec![byte]))
        .chain([None, None]);
    let factory = ConstraintFactory::from_token_bytes(tokens, &[257]).expect("an end token");
    let constraint = factory
        .compile_json_schema(&json!({"type": "string"}))
        .expect("enforceable");
    let mut matcher = Matcher::new(&constraint);
    matcher.accept(u32::from(b'"')).expect("a quote");
    let mask = matcher.compute_mask().expect("a mask");
    assert!(mask.allows(u32::from(b'a')));
    assert!(
        !mask.allows(256) && !mask.allows(257),
        "structure inside a string"
    );
    assert!(
        !mask.allows(0xff) && !mask.allows(0x80),
        "bytes that begin no character"
    );
}
