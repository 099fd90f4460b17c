//! Writes a checked schema the way the compiler reads it, as strict as it says.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::error::ConstraintError;

use super::check::References;
use super::formats;
use super::keywords::subschemas_mut;
use super::pointer;

/// References with escapes in one schema at most: each is carried as a copy of its target.
const ALIASES_MAX: usize = 32;

/// Gives the target of each escaped reference a plain name, and drops what asserts nothing.
pub(super) fn rewrite(
    schema: &Value,
    references: &References<'_>,
) -> Result<Value, ConstraintError> {
    let escaped: Vec<_> = references
        .iter()
        .filter(|(reference, _)| !pointer::is_plain(reference))
        .collect();
    if escaped.len() > ALIASES_MAX {
        return Err(ConstraintError::Unsupported {
            keyword: "$ref".to_owned(),
            path: String::new(),
            reason: format!("more than {ALIASES_MAX} references with escapes"),
        });
    }
    let mut rewritten = schema.clone();
    let mut aliases = BTreeMap::new();
    if let Value::Object(root) = &mut rewritten
        && !escaped.is_empty()
    {
        let definitions = root
            .entry("$defs")
            .or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(definitions) = definitions {
            for (reference, target) in escaped {
                let free = (0..)
                    .map(|index| format!("alias-{index}"))
                    .find(|name| !definitions.contains_key(name));
                let name = free.expect("a finite map leaves a name free");
                definitions.insert(name.clone(), (*target).clone());
                aliases.insert(reference.as_str(), format!("#/$defs/{name}"));
            }
        }
    }
    rewrite_in_place(&mut rewritten, &aliases);
    Ok(rewritten)
}

/// Recursion is bounded: the schema's depth was checked.
fn rewrite_in_place(schema: &mut Value, aliases: &BTreeMap<&str, String>) {
    if let Value::Object(members) = schema {
        if let Some(Value::String(reference)) = members.get_mut("$ref")
            && let Some(alias) = aliases.get(reference.as_str())
        {
            alias.clone_into(reference);
        }
        if members.get("uniqueItems") == Some(&Value::Bool(false)) {
            members.shift_remove("uniqueItems");
        }
        members.shift_remove("x-guidance");
        tighten_format(members);
    }
    for subschema in subschemas_mut(schema) {
        rewrite_in_place(subschema, aliases);
    }
}

/// Adds what the compiler's grammar of a format leaves open.
fn tighten_format(members: &mut Map<String, Value>) {
    let format = members.get("format").and_then(Value::as_str);
    let patterns = format.map(formats::patterns).unwrap_or_default();
    let all = patterns
        .into_iter()
        .map(|pattern| json!({"pattern": pattern}));
    match members.get_mut("allOf") {
        Some(Value::Array(present)) => present.extend(all),
        _ if all.len() == 0 => {}
        _ => {
            members.insert("allOf".to_owned(), all.collect());
        }
    }
}
