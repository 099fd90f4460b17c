//! Schemas that only a value without end would satisfy: each needs another inside it, round a circle.
//!
//! Follows only what every value must contain, so it never refuses a schema that some value satisfies;
//! circles through every option of `anyOf` or `oneOf` are not looked for.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::pointer::{self, member_path};

/// Path of a schema within a circle of needs that the root leads to.
pub(super) fn endless(root: &Value) -> Option<String> {
    let mut needs: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut pending = vec![(root, String::new())];
    while let Some((schema, path)) = pending.pop() {
        if needs.contains_key(&path) {
            continue;
        }
        let needed = needed(root, schema, &path);
        let paths = needed.iter().map(|(_, path)| path.clone()).collect();
        needs.insert(path, paths);
        pending.extend(needed);
    }
    // What needs only finite schemas is finite; a circle is what remains.
    let mut needed_by: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut num_open: BTreeMap<&str, usize> = BTreeMap::new();
    for (path, needed) in &needs {
        num_open.insert(path, needed.len());
        for inner in needed {
            needed_by.entry(inner).or_default().push(path);
        }
    }
    let mut finite: Vec<&str> = needs
        .iter()
        .filter(|(_, needed)| needed.is_empty())
        .map(|(path, _)| path.as_str())
        .collect();
    while let Some(path) = finite.pop() {
        num_open.remove(path);
        for outer in needed_by.remove(path).unwrap_or_default() {
            if let Some(open) = num_open.get_mut(outer) {
                *open -= 1;
                if *open == 0 {
                    finite.push(outer);
                }
            }
        }
    }
    num_open.keys().next().map(|path| (*path).to_owned())
}

/// The schemas that a part of every valid value, or the value itself, must satisfy too.
fn needed<'a>(root: &'a Value, schema: &'a Value, path: &str) -> Vec<(&'a Value, String)> {
    let Value::Object(members) = schema else {
        return Vec::new();
    };
    // Older drafts ignore what stands beside a reference.
    if let Some(Value::String(reference)) = members.get("$ref") {
        return pointer::resolve(root, reference).into_iter().collect();
    }
    let mut found = Vec::new();
    if let Some(Value::Array(all)) = members.get("allOf") {
        let path = member_path(path, "allOf");
        found.extend(
            all.iter()
                .enumerate()
                .map(|(index, part)| (part, format!("{path}[{index}]"))),
        );
    }
    match members.get("type").and_then(Value::as_str) {
        Some("object") => found.extend(required_members(members, path)),
        Some("array") => {
            let at_least = members.get("minItems").and_then(Value::as_u64);
            let is_plain = !members.contains_key("prefixItems");
            if let Some(items @ Value::Object(_)) = members.get("items")
                && is_plain
                && at_least.is_some_and(|count| count > 0)
            {
                found.push((items, member_path(path, "items")));
            }
        }
        _ => {}
    }
    found
}

fn required_members<'a>(members: &'a Map<String, Value>, path: &str) -> Vec<(&'a Value, String)> {
    let (Some(Value::Object(properties)), Some(Value::Array(required))) =
        (members.get("properties"), members.get("required"))
    else {
        return Vec::new();
    };
    let path = member_path(path, "properties");
    let names: BTreeSet<&str> = required.iter().filter_map(Value::as_str).collect();
    names
        .into_iter()
        .filter_map(|name| Some((properties.get(name)?, member_path(&path, name))))
        .collect()
}
