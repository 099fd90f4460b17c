//! Bytes to a JSON value, safely: UTF-8, depth and size are checked by a flat scan before anything recurses
//! or allocates per value; a key that occurs twice is an error, since parsers disagree on which one counts.

use std::fmt;

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::error::FieldError;

/// Deepest nesting of arrays and objects.
pub const MAX_DEPTH: usize = 128;

/// Most values in one body; keeps the parsed form within a small multiple of the body limit.
pub const MAX_VALUES: usize = 1 << 20;

/// Longest stretch of client text repeated in a message, in characters.
const QUOTED_CHARS: usize = 64;

/// Parses a request body.
///
/// # Errors
/// Not UTF-8, not JSON, nested deeper than [`MAX_DEPTH`], more than [`MAX_VALUES`] values, or a repeated
/// key (`param` names it).
pub fn parse(body: &[u8]) -> Result<Value, FieldError> {
    let text = std::str::from_utf8(body).map_err(|error| {
        FieldError::body(format!(
            "the body is not valid UTF-8: bad byte at offset {}",
            error.valid_up_to()
        ))
    })?;
    check_shape(text.as_bytes())?;
    let mut path = Vec::new();
    let mut deserializer = serde_json::Deserializer::from_str(text);
    deserializer.disable_recursion_limit();
    let parsed = Node { path: &mut path }.deserialize(&mut deserializer);
    let value = match parsed.and_then(|value| deserializer.end().map(|()| value)) {
        Ok(value) => value,
        Err(error) if error.is_data() => {
            let param = render_path(&path);
            return Err(FieldError::new(
                param,
                format!("the body is not usable JSON: {error}"),
            ));
        }
        Err(error) => {
            return Err(FieldError::body(format!(
                "the body is not valid JSON: {error}"
            )));
        }
    };
    Ok(value)
}

/// Repeats client text in a message without repeating much of it.
pub fn quote(text: &str) -> String {
    let mut clipped: String = text.chars().take(QUOTED_CHARS).collect();
    if clipped.len() < text.len() {
        clipped.push('…');
    }
    format!("{clipped:?}")
}

/// A flat scan: knows strings and brackets, nothing more; the parser judges the grammar.
fn check_shape(body: &[u8]) -> Result<(), FieldError> {
    let (mut depth, mut values, mut in_string, mut escaped) = (0usize, 1usize, false, false);
    for (offset, byte) in body.iter().enumerate() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'[' | b'{' => {
                depth += 1;
                values += 1;
                if depth > MAX_DEPTH {
                    return Err(FieldError::body(format!(
                        "the body nests deeper than {MAX_DEPTH} levels at offset {offset}"
                    )));
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' => values += 1,
            _ => {}
        }
        if values > MAX_VALUES {
            return Err(FieldError::body(format!(
                "the body holds more than {MAX_VALUES} values"
            )));
        }
    }
    Ok(())
}

enum Step {
    Key(String),
    Index(usize),
}

fn render_path(path: &[Step]) -> String {
    let mut rendered = String::new();
    for step in path {
        match step {
            Step::Key(key) if rendered.is_empty() => {
                rendered.extend(key.chars().take(QUOTED_CHARS))
            }
            Step::Key(key) => {
                rendered.push('.');
                rendered.extend(key.chars().take(QUOTED_CHARS));
            }
            Step::Index(index) => rendered.push_str(&format!("[{index}]")),
        }
    }
    rendered
}

/// Builds a [`Value`]; on an error the path stays where it happened.
struct Node<'path> {
    path: &'path mut Vec<Step>,
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        loop {
            self.path.push(Step::Index(values.len()));
            match seq.next_element_seed(Node { path: self.path })? {
                Some(value) => values.push(value),
                None => {
                    self.path.pop();
                    return Ok(Value::Array(values));
                }
            }
            self.path.pop();
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            self.path.push(Step::Key(key.clone()));
            if map.contains_key(&key) {
                return Err(A::Error::custom(format!(
                    "key {} occurs twice",
                    quote(&key)
                )));
            }
            let value = entries.next_value_seed(Node { path: self.path })?;
            map.insert(key, value);
            self.path.pop();
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(depth: usize) -> String {
        format!("{}{}", "[".repeat(depth), "]".repeat(depth))
    }

    #[test]
    fn fault_146_depth_is_cut_before_parsing() {
        assert!(parse(nested(MAX_DEPTH).as_bytes()).is_ok());
        for depth in [MAX_DEPTH + 1, 10_000, 1_000_000] {
            let error = parse(nested(depth).as_bytes()).expect_err("too deep");
            assert!(error.message.contains("128"), "{depth}: {error}");
        }
        let in_a_string = format!("{{\"a\": \"{}\"}}", "[".repeat(10_000));
        assert!(parse(in_a_string.as_bytes()).is_ok());
        let after_an_escape = format!("{{\"a\\\"\": {}}}", nested(200));
        assert!(parse(after_an_escape.as_bytes()).is_err());
    }

    #[test]
    fn a_repeated_key_is_named_with_its_path() {
        let error = parse(br#"{"a": [{"b": 1, "b": 2}]}"#).expect_err("repeated");
        assert_eq!(error.param.as_deref(), Some("a[0].b"));
        let escaped = parse(br#"{"n": 1, "\u006e": 2}"#).expect_err("repeated under an escape");
        assert_eq!(escaped.param.as_deref(), Some("n"));
    }

    #[test]
    fn bad_bytes_are_errors() {
        let bad: [&[u8]; 9] = [
            b"",
            b"{",
            b"{} x",
            b"\xff",
            b"{\"a\": \"\xc4\xe3\xba\xc3\"}",
            b"{\"a\": \"\\ud800\"}",
            b"{\"a\": 1e999}",
            b"{\"a\": NaN}",
            b"\xef\xbb\xbf{}",
        ];
        for body in bad {
            assert!(parse(body).is_err(), "{body:?}");
        }
    }

    #[test]
    fn many_values_are_refused() {
        let body = format!("[{}0]", "0,".repeat(MAX_VALUES));
        assert!(parse(body.as_bytes()).is_err());
    }

    #[test]
    fn values_equal_the_plain_parser() {
        let text = r#"{"a": [1, -2, 1.5, 18446744073709551615, true, null, "é\n"], "b": {}}"#;
        let plain: Value = serde_json::from_str(text).expect("valid");
        assert_eq!(parse(text.as_bytes()).expect("valid"), plain);
    }
}
