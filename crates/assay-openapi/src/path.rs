//! Paths of fields in bodies: `messages[0].content` as readers write it, `messages[].content` as the document does.

use serde_json::Value;

/// One step of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step<'p> {
    Name(&'p str),
    Index(usize),
}

/// The steps of `path`; names hold no dots and no brackets in samples.
pub(crate) fn steps(path: &str) -> Vec<Step<'_>> {
    let parts = path.split(['.', '[']).filter(|part| !part.is_empty());
    parts
        .map(|part| match part.strip_suffix(']') {
            Some(index) => Step::Index(index.parse().unwrap_or_default()),
            None => Step::Name(part),
        })
        .collect()
}

/// `path` with the step `name` added.
pub(crate) fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

/// The value at `path` of `body`.
pub(crate) fn at<'v>(body: &'v mut Value, path: &str) -> Option<&'v mut Value> {
    steps(path)
        .into_iter()
        .try_fold(body, |value, step| match step {
            Step::Name(name) => value.get_mut(name),
            Step::Index(index) => value.get_mut(index),
        })
}

/// `key` without the kinds of its objects: `input[]<message>.role` as `input[].role`.
pub(crate) fn without_kinds(key: &str) -> String {
    let mut bare = String::new();
    let mut depth = 0_usize;
    for letter in key.chars() {
        match letter {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ if depth == 0 => bare.push(letter),
            _ => {}
        }
    }
    bare
}
