//! Schemas that only a value without end would satisfy: each needs another inside it, round a circle.
//!
//! Follows only what every value must contain, so it never refuses a schema that some value satisfies.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::pointer::{self, member_path};

/// A schema and its path.
type Place<'a> = (&'a Value, String);

/// Path of a schema within a circle of needs that the root leads to.
pub(super) fn endless(root: &Value) -> Option<String> {
    let mut circles = Circles::default();
    let mut pending = vec![(root, String::new())];
    while let Some((schema, path)) = pending.pop() {
        if circles.num_open.contains_key(&path) {
            continue;
        }
        let Needed { all, any } = needed(root, schema, &path);
        let groups = (0..any.len()).map(|index| format!("{path} {index}"));
        let groups: Vec<String> = groups.collect();
        circles.add(&path, all.iter().map(|(_, path)| path).chain(&groups));
        for (group, options) in groups.iter().zip(&any) {
            circles.add_choice(group, options.iter().map(|(_, path)| path));
        }
        pending.extend(all);
        pending.extend(any.into_iter().flatten());
    }
    circles.left()
}

/// What needs what. Choices among options stand in it too, under names that no path has.
#[derive(Default)]
struct Circles {
    needed_by: BTreeMap<String, Vec<String>>,
    num_open: BTreeMap<String, usize>,
}

impl Circles {
    /// `path` is finite once all of `needed` are.
    fn add<'a>(&mut self, path: &str, needed: impl Iterator<Item = &'a String>) {
        let num_needed = self.add_needs(path, needed);
        self.num_open.insert(path.to_owned(), num_needed);
    }

    /// `group` is finite once one of `options` is.
    fn add_choice<'a>(&mut self, group: &str, options: impl Iterator<Item = &'a String>) {
        let num_options = self.add_needs(group, options);
        self.num_open.insert(group.to_owned(), num_options.min(1));
    }

    fn add_needs<'a>(&mut self, path: &str, needed: impl Iterator<Item = &'a String>) -> usize {
        needed
            .map(|inner| {
                let needed_by = self.needed_by.entry(inner.clone()).or_default();
                needed_by.push(path.to_owned());
            })
            .count()
    }

    /// What needs only finite schemas is finite; a circle is what remains.
    fn left(mut self) -> Option<String> {
        let finite = self.num_open.iter().filter(|(_, open)| **open == 0);
        let mut finite: Vec<String> = finite.map(|(path, _)| path.clone()).collect();
        while let Some(path) = finite.pop() {
            self.num_open.remove(&path);
            for outer in self.needed_by.remove(&path).unwrap_or_default() {
                if let Some(open) = self.num_open.get_mut(&outer)
                    && *open > 0
                {
                    *open -= 1;
                    if *open == 0 {
                        finite.push(outer);
                    }
                }
            }
        }
        self.num_open.into_keys().next()
    }
}

/// What a part of every valid value, or the value itself, must satisfy too.
#[derive(Default)]
struct Needed<'a> {
    all: Vec<Place<'a>>,
    /// One of each.
    any: Vec<Vec<Place<'a>>>,
}

fn needed<'a>(root: &'a Value, schema: &'a Value, path: &str) -> Needed<'a> {
    let mut found = Needed::default();
    let Value::Object(members) = schema else {
        return found;
    };
    // Older drafts ignore what stands beside a reference.
    if let Some(Value::String(reference)) = members.get("$ref") {
        found.all.extend(pointer::resolve(root, reference));
        return found;
    }
    found.all.extend(parts(members, "allOf", path));
    for keyword in ["anyOf", "oneOf"] {
        let options = parts(members, keyword, path);
        if !options.is_empty() {
            found.any.push(options);
        }
    }
    match members.get("type").and_then(Value::as_str) {
        Some("object") => found.all.extend(required_members(members, path)),
        Some("array") => {
            let at_least = members.get("minItems").and_then(Value::as_u64);
            let is_plain = !members.contains_key("prefixItems");
            if let Some(items @ Value::Object(_)) = members.get("items")
                && is_plain
                && at_least.is_some_and(|count| count > 0)
            {
                found.all.push((items, member_path(path, "items")));
            }
        }
        _ => {}
    }
    found
}

/// The schemas in the list of a keyword.
fn parts<'a>(members: &'a Map<String, Value>, keyword: &str, path: &str) -> Vec<Place<'a>> {
    let Some(Value::Array(parts)) = members.get(keyword) else {
        return Vec::new();
    };
    let path = member_path(path, keyword);
    let numbered = parts.iter().enumerate();
    numbered
        .map(|(index, part)| (part, format!("{path}[{index}]")))
        .collect()
}

fn required_members<'a>(members: &'a Map<String, Value>, path: &str) -> Vec<Place<'a>> {
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
