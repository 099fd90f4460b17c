//! JSON as its sender spelled it: key order and number text, which a parsed value no longer has.
//!
//! Works on the text of a body that [`crate::json::parse`] has accepted. Splitting a container costs its length once,
//! so reading a body level by level costs its length times its depth.

use std::fmt;

use serde::Deserializer;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The text of one valid JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spelled<'t>(&'t str);

impl<'t> Spelled<'t> {
    /// The value that a body of valid JSON is; `None` where it is not.
    pub fn of_body(body: &'t [u8]) -> Option<Self> {
        let text = std::str::from_utf8(body).ok()?;
        serde_json::from_str::<&RawValue>(text)
            .ok()
            .map(|raw| Self(raw.get()))
    }

    /// Members of an object, in order; none of another value.
    pub fn members(self) -> Vec<(String, Spelled<'t>)> {
        let mut reader = serde_json::Deserializer::from_str(self.0);
        reader.deserialize_map(Members).unwrap_or_default()
    }

    /// The member `name` of an object.
    pub fn member(self, name: &str) -> Option<Spelled<'t>> {
        let mut members = self.members().into_iter();
        members.find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// Elements of an array, in order; none of another value.
    pub fn elements(self) -> Vec<Spelled<'t>> {
        let mut reader = serde_json::Deserializer::from_str(self.0);
        reader.deserialize_seq(Elements).unwrap_or_default()
    }

    /// The value without blanks between its parts: keys in their order, numbers in their digits, strings with the
    /// fewest escapes, so that a client's way of writing non-ASCII letters makes no difference.
    pub fn compact(self) -> String {
        let mut compact = String::with_capacity(self.0.len());
        let mut rest = self.0;
        while let Some(at) = rest.find(['"', ' ', '\t', '\n', '\r']) {
            compact.push_str(&rest[..at]);
            rest = &rest[at..];
            if rest.starts_with('"') {
                let (string, after) = split_string(rest);
                compact.push_str(&respelled(string));
                rest = after;
            } else {
                rest = &rest[1..];
            }
        }
        compact.push_str(rest);
        compact
    }
}

/// The string that `text` begins with, quotes included, and what follows it.
fn split_string(text: &str) -> (&str, &str) {
    let mut is_escaped = false;
    for (offset, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return text.split_at(offset + 1),
            _ => {}
        }
    }
    (text, "")
}

fn respelled(string: &str) -> String {
    let read: Result<String, _> = serde_json::from_str(string);
    let written = read.and_then(|text| serde_json::to_string(&text));
    written.unwrap_or_else(|_| string.to_owned())
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(String, Spelled<'de>)>;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some((key, value)) = map.next_entry::<String, &'de RawValue>()? {
            members.push((key, Spelled(value.get())));
        }
        Ok(members)
    }
}

struct Elements;

impl<'de> Visitor<'de> for Elements {
    type Value = Vec<Spelled<'de>>;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut elements = Vec::new();
        while let Some(value) = seq.next_element::<&'de RawValue>()? {
            elements.push(Spelled(value.get()));
        }
        Ok(elements)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(text: &str) -> Spelled<'_> {
        Spelled::of_body(text.as_bytes()).expect("valid JSON")
    }

    #[test]
    fn d3_keys_keep_their_order_and_numbers_their_text() {
        let text = "{ \"z\" : 1.10,\n\t\"a\": [ 1e3 , -0, 12345678901234567890123 ], \"s\": \"a b\\n\\u00e9\\\" \" }";
        assert_eq!(
            spelled(text).compact(),
            "{\"z\":1.10,\"a\":[1e3,-0,12345678901234567890123],\"s\":\"a b\\né\\\" \"}"
        );
        for text in ["\"a  b\"", "true", "[]", "{}", "\"\\\\\"", "  7 "] {
            assert_eq!(spelled(text).compact(), text.trim());
        }
    }

    #[test]
    fn escapes_do_not_tell_senders_apart() {
        let plain = spelled("{\"é\":\"日本 🙂\"}").compact();
        let escaped = spelled("{\"\\u00e9\": \"\\u65e5\\u672c \\ud83d\\ude42\"}").compact();
        assert_eq!(plain, escaped);
    }

    #[test]
    fn containers_split_into_their_parts() {
        let object = spelled("{\"a\": {\"b\": [1, 2.0]}, \"\\u0063\": null}");
        let names: Vec<_> = object.members().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["a", "c"]);
        let list = object
            .member("a")
            .and_then(|a| a.member("b"))
            .expect("there");
        let elements: Vec<_> = list.elements().into_iter().map(Spelled::compact).collect();
        assert_eq!(elements, ["1", "2.0"]);
        assert!(list.members().is_empty() && object.elements().is_empty());
        let deep = format!("{}7{}", "[".repeat(128), "]".repeat(128));
        assert_eq!(spelled(&deep).compact(), deep);
        assert_eq!(spelled(&deep).elements().len(), 1);
    }
}
