//! Places in a JSON document: heights, references into it, and how a path is written in errors.

use std::borrow::Cow;

use serde_json::Value;

/// Levels of arrays and objects, 0 for a scalar; without recursion.
pub(super) fn height(value: &Value) -> usize {
    let mut tallest = 0;
    let mut pending = vec![(value, 0_usize)];
    while let Some((value, depth)) = pending.pop() {
        let depth = match value {
            Value::Array(items) => {
                pending.extend(items.iter().map(|item| (item, depth + 1)));
                depth + 1
            }
            Value::Object(members) => {
                pending.extend(members.values().map(|member| (member, depth + 1)));
                depth + 1
            }
            _ => depth,
        };
        tallest = tallest.max(depth);
    }
    tallest
}

/// The target of a reference within the document (`#`, `#/a/b`), and its path; `None` if there is none.
pub(super) fn resolve<'a>(root: &'a Value, reference: &str) -> Option<(&'a Value, String)> {
    let pointer = percent_decoded(reference.strip_prefix('#')?)?;
    if pointer.is_empty() {
        return Some((root, String::new()));
    }
    let mut target = root;
    let mut path = String::new();
    for segment in pointer.strip_prefix('/')?.split('/') {
        let key = segment.replace("~1", "/").replace("~0", "~");
        target = match target {
            Value::Object(members) => {
                path = member_path(&path, &key);
                members.get(&key)?
            }
            Value::Array(items) => {
                let index: usize = key.parse().ok()?;
                path = format!("{path}[{index}]");
                items.get(index)?
            }
            _ => return None,
        };
    }
    Some((target, path))
}

/// `path` followed by a member's name.
pub(super) fn member_path(path: &str, name: &str) -> String {
    let is_plain = !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | '-'));
    if is_plain {
        format!("{path}.{name}")
    } else {
        format!("{path}[{}]", Value::from(name))
    }
}

/// Whether the compiler finds the target of `reference` by splitting it at its slashes.
pub(super) fn is_plain(reference: &str) -> bool {
    reference == "#" || (!reference.contains(['~', '%']) && !reference.ends_with('/'))
}

fn percent_decoded(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('%') {
        return Some(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digit = |byte: u8| char::from(byte).to_digit(16);
            let value = digit(rest.next()?)? * 16 + digit(rest.next()?)?;
            bytes.push(u8::try_from(value).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}
