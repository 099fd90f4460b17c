//! JSON in one spelling, so that a hash of it means its content.
//!
//! RFC 8785 (JSON Canonicalization Scheme): no white space, members in the order of their names' UTF-16 units, strings
//! with the fewest escapes. Its rule for fractions is not needed: a receipt holds no number but integers, which are
//! written out in full, and real values as the hex digits of their bits.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// The canonical text of `value`.
pub fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

/// The SHA-256 of the canonical text, in lowercase hex.
pub fn canonical_sha256(value: &Value) -> String {
    sha256_hex(canonical(value).as_bytes())
}

/// The SHA-256 of `bytes`, in lowercase hex.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Lowercase hex of `bytes`.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
            text.push('{');
            for (index, (name, member)) in members.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_string(name, text);
                text.push(':');
                write(member, text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write(item, text);
            }
            text.push(']');
        }
        Value::String(string) => write_string(string, text),
        Value::Null => text.push_str("null"),
        Value::Bool(flag) => text.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => text.push_str(&number.to_string()),
    }
}

/// As RFC 8785 asks (3.2.2.2): control characters are escaped, by two letters where JSON has them; all else stands.
fn write_string(string: &str, text: &mut String) {
    text.push('"');
    for char in string.chars() {
        match char {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\u{8}' => text.push_str("\\b"),
            '\t' => text.push_str("\\t"),
            '\n' => text.push_str("\\n"),
            '\u{c}' => text.push_str("\\f"),
            '\r' => text.push_str("\\r"),
            '\0'..'\u{20}' => text.push_str(&format!("\\u{:04x}", u32::from(char))),
            _ => text.push(char),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let value: Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(canonical(&value), expected);
    }

    #[test]
    fn white_space_and_order_fall_away_and_escapes_have_one_form() {
        check(
            "{ \"b\" : [1, 2 ,3], \"a\": {} }",
            "{\"a\":{},\"b\":[1,2,3]}",
        );
        check("\"\\u00e9\\/\\u001f\\n\\u000a\"", "\"é/\\u001f\\n\\n\"");
        check("-9223372036854775808", "-9223372036854775808");
        check(
            "[null,true,false,\"\\u007f\"]",
            "[null,true,false,\"\u{7f}\"]",
        );
    }

    /// The example of RFC 8785, 3.2.3: UTF-16 units order otherwise than code points.
    #[test]
    fn members_stand_in_the_order_of_their_utf16_units() {
        let names = [
            "\u{20ac}",
            "\r",
            "\u{fb33}",
            "1",
            "\u{1f600}",
            "\u{80}",
            "\u{f6}",
        ];
        let members = names.map(|name| (name.to_owned(), Value::Null));
        let text = canonical(&Value::Object(members.into_iter().collect()));
        let sorted = [
            "\\r",
            "1",
            "\u{80}",
            "\u{f6}",
            "\u{20ac}",
            "\u{1f600}",
            "\u{fb33}",
        ];
        let expected: Vec<String> = sorted
            .iter()
            .map(|name| format!("\"{name}\":null"))
            .collect();
        assert_eq!(text, format!("{{{}}}", expected.join(",")));
    }
}
