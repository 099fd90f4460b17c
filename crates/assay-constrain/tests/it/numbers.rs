//! Numbers at the edges: refused where they would be rounded, never an abort, and kept in replies.

use assay_constrain::{Constraint, ConstraintError, Matcher};
use serde_json::{Map, Value, json};

use crate::vocabulary::{factory, vocabulary};

/// As a request arrives: through the parser, which may read a large integer as f64.
fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn check_refused(text: &str, keyword: &str, path: &str, reason: &str) {
    let Err(error) = factory().compile_json_schema(&parse(text)) else {
        panic!("{text} was compiled");
    };
    assert_eq!(error.path(), path, "{text}: {error}");
    let message = error.to_string();
    for part in [&format!("`{keyword}`"), reason] {
        assert!(message.contains(part), "{text}: {message:?} lacks {part:?}");
    }
}

#[test]
fn integer_bounds_beyond_i64_are_refused_and_do_not_overflow_the_stack() {
    for text in [
        r#"{"type":"integer","minimum":-1e21,"maximum":-1e20}"#,
        r#"{"type":"integer","minimum":-9223372036854775808,"maximum":-9223372036854775808}"#,
        r#"{"allOf":[{"type":"integer"},{"minimum":-1e300,"maximum":-1e299}]}"#,
    ] {
        let error = factory()
            .compile_json_schema(&parse(text))
            .expect_err("refused");
        assert!(
            error.to_string().contains("beyond ±2^53"),
            "{text}: {error}"
        );
    }
}

#[test]
fn numbers_beyond_two_to_the_53_are_refused_in_every_literal_form() {
    let literals = [
        "9007199254740993",
        "-9007199254740993",
        "9007199254740993.0",
        "9223372036854775808",
        "18446744073709551616",
        "18446744073709551617",
        "-9223372036854775809",
        "100000000000000000000",
        "1e16",
        "1e25",
        "-1e25",
        "1.5E300",
    ];
    for literal in literals {
        for (text, keyword) in [
            (format!(r#"{{"const":{literal}}}"#), "const"),
            (format!(r#"{{"const":{{"a":[1,{literal}]}}}}"#), "const"),
            (format!(r#"{{"enum":[1,{literal}]}}"#), "enum"),
            (format!(r#"{{"enum":[[{{"b":{literal}}}]]}}"#), "enum"),
        ] {
            check_refused(&text, keyword, "", "beyond ±2^53");
        }
        for keyword in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"] {
            for kind in ["integer", "number"] {
                let inner = format!(r#"{{"type":"{kind}","{keyword}":{literal}}}"#);
                check_refused(&inner, keyword, "", "beyond ±2^53");
                let outer = format!(r#"{{"type":"object","properties":{{"p":{inner}}}}}"#);
                check_refused(&outer, keyword, ".properties.p", "beyond ±2^53");
            }
        }
        if !literal.starts_with('-') {
            let text = format!(r#"{{"type":"integer","multipleOf":{literal}}}"#);
            check_refused(&text, "multipleOf", "", "beyond ±2^53");
        }
    }
    // The last exact integer is one, but nothing can be told from it by 1.
    assert!(
        factory()
            .compile_json_schema(&json!({"type": "integer", "maximum": 1_u64 << 53}))
            .is_ok()
    );
    for text in [
        r#"{"type":"integer","exclusiveMinimum":9007199254740992}"#,
        r#"{"type":"integer","exclusiveMaximum":-9007199254740992}"#,
    ] {
        let error = factory()
            .compile_json_schema(&parse(text))
            .expect_err("refused");
        assert!(error.to_string().contains("xclusive"), "{text}: {error}");
    }
    check_refused(
        r#"{"type":"integer","minimum":9007199254740992,"exclusiveMinimum":true}"#,
        "minimum",
        "",
        "beyond ±2^53",
    );
}

#[test]
fn steps_that_would_wrap_are_refused() {
    for literal in [
        "100001",
        "999983",
        "100.70431",
        "4294967291",
        "429496729",
        "0.000000001",
        "1.23456789012",
        "1e-30",
    ] {
        let text = format!(r#"{{"type":"number","multipleOf":{literal}}}"#);
        check_refused(&text, "multipleOf", "", "too many digits");
    }
    for text in [
        r#"{"type":"integer","allOf":[{"multipleOf":100000},{"multipleOf":99999}]}"#,
        r##"{"type":"integer","multipleOf":65537,"$ref":"#/$defs/a","$defs":{"a":{"multipleOf":65537}}}"##,
    ] {
        check_refused(text, "multipleOf", "", "too many digits");
    }
    for text in [
        r#"{"type":"integer","multipleOf":100000}"#,
        r#"{"type":"number","exclusiveMinimum":-1432,"multipleOf":99.991}"#,
        r#"{"type":"number","multipleOf":0.01}"#,
        r#"{"type":"integer","allOf":[{"multipleOf":6},{"multipleOf":10}]}"#,
    ] {
        let result = factory().compile_json_schema(&parse(text));
        assert!(result.is_ok(), "{text}: {result:?}");
    }
}

#[test]
fn counts_that_are_none_are_refused_by_name() {
    for keyword in [
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
    ] {
        for literal in [
            "-1",
            "1.5",
            "4294967296",
            "18446744073709551616",
            "1e300",
            "\"1\"",
        ] {
            let text = format!(r#"{{"{keyword}":{literal}}}"#);
            check_refused(&text, keyword, "", "not an integer from 0");
        }
    }
}

#[test]
fn a_circle_of_required_members_is_unsatisfiable() {
    for text in [
        r##"{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"next":{"$ref":"#/$defs/n"}},"required":["next"],"additionalProperties":false}}}"##,
        r##"{"type":"array","items":{"$ref":"#"},"minItems":1}"##,
        r##"{"type":"object","properties":{"a":{"allOf":[{"$ref":"#"}]}},"required":["a"]}"##,
    ] {
        let result = factory().compile_json_schema(&parse(text));
        assert!(
            matches!(result, Err(ConstraintError::Unsatisfiable { .. })),
            "{text}: {result:?}"
        );
    }
    for text in [
        r##"{"properties":{"a":{"$ref":"#"}},"required":["a"]}"##,
        r##"{"type":"array","items":{"$ref":"#"}}"##,
        r##"{"type":"object","properties":{"a":{"anyOf":[{"type":"null"},{"$ref":"#"}]}},"required":["a"]}"##,
        r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/x"},"b":{"$ref":"#/$defs/x"}},"required":["a","b"],"$defs":{"x":{"type":"null"}}}"##,
    ] {
        let result = factory().compile_json_schema(&parse(text));
        assert!(result.is_ok(), "{text}: {result:?}");
    }
}

struct Draws(u64);

impl Draws {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as usize % count
    }

    fn literal(&mut self) -> String {
        let sign = ["", "-"][self.below(2)];
        let digits = (0..=self.below(20)).map(|_| char::from(b'0' + self.below(10) as u8));
        let digits: String = std::iter::once('7').chain(digits).collect();
        match self.below(8) {
            0 => format!("{sign}{digits}"),
            1 => format!("{sign}{}e{}", self.below(100), self.below(309)),
            2 => format!("{sign}{}e-{}", self.below(100), self.below(330)),
            3 => format!("{sign}0.{digits}"),
            4 => format!("{sign}{}.{digits}", self.below(1000)),
            5 => format!("{sign}{}", (1_u64 << 53) - 2 + self.below(4) as u64),
            6 => format!(
                "{sign}{}",
                [i64::MAX as u64, 1 << 63, u64::MAX][self.below(3)]
            ),
            _ => format!("{sign}{}", self.below(2000)),
        }
    }
}

/// A number drawn from the masks; `None` if it does not end soon.
fn drawn_number(constraint: &Constraint, draws: &mut Draws) -> Option<f64> {
    let end = vocabulary().end_token_id();
    let mut matcher = Matcher::new(constraint);
    let mut bytes = Vec::new();
    for _ in 0..60 {
        let mask = matcher.compute_mask().ok()?;
        let token_id = if mask.allows(end) && draws.below(4) == 0 {
            end
        } else {
            mask.iter().nth(draws.below(mask.num_allowed()))?
        };
        matcher.accept(token_id).expect("a token of the mask");
        if token_id == end {
            let text = String::from_utf8(bytes).expect("UTF-8");
            return Some(text.parse().unwrap_or_else(|_| panic!("{text:?}")));
        }
        bytes.extend_from_slice(&vocabulary().token_bytes()[token_id as usize]);
    }
    None
}

/// f64 rounds what is compared here, so only a clear violation is one.
fn check_within(schema: &Value, value: f64) {
    let bound = |keyword: &str| schema.get(keyword).and_then(Value::as_f64);
    for lower in ["minimum", "exclusiveMinimum"] {
        assert!(
            bound(lower).is_none_or(|at| value >= at),
            "{schema}: {value:?}"
        );
    }
    for upper in ["maximum", "exclusiveMaximum"] {
        assert!(
            bound(upper).is_none_or(|at| value <= at),
            "{schema}: {value:?}"
        );
    }
}

#[test]
fn random_extreme_numbers_never_abort_and_bounds_hold() {
    let mut draws = Draws(11);
    let (mut num_compiled, mut num_drawn) = (0, 0);
    for _ in 0..400 {
        let mut schema = Map::new();
        schema.insert(
            "type".to_owned(),
            json!(["integer", "number"][draws.below(2)]),
        );
        for keyword in [
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "multipleOf",
        ] {
            if draws.below(3) == 0 {
                // Past f64 the parser itself refuses.
                if let Ok(number) = serde_json::from_str(&draws.literal()) {
                    schema.insert(keyword.to_owned(), number);
                }
            }
        }
        let schema = Value::Object(schema);
        match factory().compile_json_schema(&schema) {
            Ok(constraint) => {
                num_compiled += 1;
                for _ in 0..3 {
                    if let Some(value) = drawn_number(&constraint, &mut draws) {
                        num_drawn += 1;
                        check_within(&schema, value);
                    }
                }
            }
            Err(error) => {
                assert!(error.is_callers_fault(), "{schema}: {error:?}");
                assert!(
                    !error.to_string().contains("compiler failed"),
                    "{schema}: {error}"
                );
            }
        }
    }
    assert!(
        num_compiled > 40 && num_drawn > 40,
        "{num_compiled}, {num_drawn}"
    );
}
