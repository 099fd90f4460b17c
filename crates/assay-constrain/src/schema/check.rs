//! Every keyword of a schema and of all it refers to: known, of the right shape, and enforceable.

use std::collections::{BTreeMap, BTreeSet};

use llguidance::derivre::RegexBuilder;
use llguidance::regex_to_lark;
use serde_json::{Map, Value};

use crate::error::{ConstraintError, invalid, unsupported};

use super::keywords::{Role, role, subschemas};
use super::{numbers, pointer};

/// Targets by the text of the reference.
pub(super) type References<'a> = BTreeMap<String, &'a Value>;

/// Formats with a grammar.
const FORMATS: [&str; 10] = [
    "date-time",
    "time",
    "date",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uuid",
    "uri",
];
const TYPES: [&str; 7] = [
    "null", "boolean", "number", "integer", "string", "array", "object",
];
/// `$schema` without its fragment, oldest first; `prefixItems` came with the last.
const DRAFTS: [&str; 5] = [
    "http://json-schema.org/draft-04/schema",
    "http://json-schema.org/draft-06/schema",
    "http://json-schema.org/draft-07/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
];

/// Checks the whole schema; its references by their text.
pub(super) fn check(root: &Value) -> Result<References<'_>, ConstraintError> {
    let mut references = References::new();
    let mut visited = BTreeSet::new();
    let mut pending = vec![(root, String::new())];
    while let Some((schema, path)) = pending.pop() {
        if !visited.insert(path.clone()) {
            continue;
        }
        let members = match schema {
            Value::Object(members) => members,
            Value::Bool(_) => continue,
            _ => return Err(invalid("schema", &path, "neither an object nor a boolean")),
        };
        let checker = Checker {
            root,
            members,
            path: &path,
        };
        for (keyword, value) in members {
            checker.check_keyword(keyword, value)?;
        }
        checker.check_combinations()?;
        if let Some(Value::String(reference)) = members.get("$ref") {
            let Some((target, target_path)) = pointer::resolve(root, reference) else {
                return Err(unsupported(
                    "$ref",
                    &path,
                    &format!("`{reference}` names nothing within the schema"),
                ));
            };
            references.insert(reference.clone(), target);
            pending.push((target, target_path));
        }
        pending.extend(subschemas(schema, &path));
    }
    Ok(references)
}

struct Checker<'a> {
    root: &'a Value,
    members: &'a Map<String, Value>,
    path: &'a str,
}

impl Checker<'_> {
    fn check_keyword(&self, keyword: &str, value: &Value) -> Result<(), ConstraintError> {
        let path = self.path;
        match role(keyword) {
            Role::Annotation => Ok(()),
            Role::Unsupported(reason) => Err(unsupported(keyword, path, reason)),
            Role::NamedSchemas => match value {
                Value::Object(named) if keyword == "patternProperties" => named
                    .keys()
                    .try_for_each(|pattern| check_pattern(keyword, path, pattern)),
                Value::Object(_) => Ok(()),
                _ => Err(invalid(keyword, path, "not an object")),
            },
            Role::Schemas => match (keyword, value) {
                ("anyOf" | "oneOf" | "allOf", Value::Array(items)) if !items.is_empty() => Ok(()),
                ("anyOf" | "oneOf" | "allOf", _) => {
                    Err(invalid(keyword, path, "not a list of at least one schema"))
                }
                ("prefixItems", Value::Array(_)) | ("items", _) => Ok(()),
                ("prefixItems", _) => Err(invalid(keyword, path, "not a list")),
                (_, Value::Array(_)) => Err(invalid(keyword, path, "not a schema")),
                _ => Ok(()),
            },
            Role::Assertion => self.check_assertion(keyword, value),
        }
    }

    fn check_assertion(&self, keyword: &str, value: &Value) -> Result<(), ConstraintError> {
        let path = self.path;
        let require = |holds: bool, reason: &str| {
            holds
                .then_some(())
                .ok_or_else(|| invalid(keyword, path, reason))
        };
        let exact = |inexact: Option<String>| match inexact {
            None => Ok(()),
            Some(reason) => Err(unsupported(keyword, path, &reason)),
        };
        match keyword {
            "type" => {
                let is_type = |value: &Value| value.as_str().is_some_and(|t| TYPES.contains(&t));
                let holds = match value {
                    Value::Array(types) => !types.is_empty() && types.iter().all(is_type),
                    single => is_type(single),
                };
                require(holds, "not a type's name or a list of them")
            }
            "enum" => {
                let values = value.as_array().filter(|values| !values.is_empty());
                require(values.is_some(), "not a list of at least one value")?;
                exact(numbers::inexact_constant(value))
            }
            "const" => exact(numbers::inexact_constant(value)),
            "minimum" | "maximum" => match value {
                Value::Number(number) => {
                    // A boolean is draft 4's form of the exclusive keywords.
                    let exclusive = if keyword == "minimum" {
                        "exclusiveMinimum"
                    } else {
                        "exclusiveMaximum"
                    };
                    let is_exclusive = self.members.get(exclusive) == Some(&Value::Bool(true));
                    exact(numbers::inexact_bound(number, is_exclusive))
                }
                _ => require(false, "not a number"),
            },
            "exclusiveMinimum" | "exclusiveMaximum" => match value {
                Value::Number(number) => exact(numbers::inexact_bound(number, true)),
                _ => require(value.is_boolean(), "not a number"),
            },
            "multipleOf" => match value {
                Value::Number(number) if number.as_f64().is_some_and(|step| step > 0.0) => {
                    exact(numbers::inexact_step(number))
                }
                _ => require(false, "not a number above 0"),
            },
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties"
            | "maxProperties" => require(
                value
                    .as_u64()
                    .is_some_and(|count| u32::try_from(count).is_ok()),
                "not an integer from 0 to 4294967295",
            ),
            "uniqueItems" => match value {
                Value::Bool(false) => Ok(()),
                Value::Bool(true) => Err(unsupported(
                    keyword,
                    path,
                    "items would have to be compared with all before them",
                )),
                _ => require(false, "not a boolean"),
            },
            "required" => require(
                value
                    .as_array()
                    .is_some_and(|names| names.iter().all(Value::is_string)),
                "not a list of names",
            ),
            "pattern" => match value {
                Value::String(pattern) => check_pattern(keyword, path, pattern),
                _ => require(false, "not a string"),
            },
            "format" => {
                let format = value.as_str();
                require(format.is_some(), "not a string")?;
                match format.filter(|format| !FORMATS.contains(format)) {
                    None => Ok(()),
                    Some(format) => Err(unsupported(
                        keyword,
                        path,
                        &format!("`{format}` is not one of {}", FORMATS.join(", ")),
                    )),
                }
            }
            "$ref" => require(value.is_string(), "not a string"),
            "$id" if path.is_empty() => require(value.is_string(), "not a string"),
            "$id" => Err(unsupported(
                keyword,
                path,
                "a schema with its own base inside another",
            )),
            "$schema" => match self.draft() {
                Some(_) => Ok(()),
                None => Err(unsupported(keyword, path, "not a known draft")),
            },
            _ => Ok(()),
        }
    }

    /// Keywords that the compiler would read one without the other.
    fn check_combinations(&self) -> Result<(), ConstraintError> {
        if self.members.contains_key("prefixItems") {
            if self.members.contains_key("additionalItems") {
                let reason = "`prefixItems` beside it has `items` for the rest";
                return Err(unsupported("additionalItems", self.path, reason));
            }
            if matches!(self.members.get("items"), Some(Value::Array(_))) {
                return Err(invalid("items", self.path, "a list beside `prefixItems`"));
            }
            if self.draft() != Some(DRAFTS.len() - 1) {
                let reason = "the draft that `$schema` names does not have it";
                return Err(unsupported("prefixItems", self.path, reason));
            }
        }
        Ok(())
    }

    /// Index in [`DRAFTS`], by the root's `$schema`.
    fn draft(&self) -> Option<usize> {
        match self.root.get("$schema") {
            None => Some(DRAFTS.len() - 1),
            Some(name) => {
                let name = name.as_str()?.trim_end_matches('#');
                DRAFTS.iter().position(|draft| *draft == name)
            }
        }
    }
}

fn check_pattern(keyword: &str, path: &str, pattern: &str) -> Result<(), ConstraintError> {
    let result = RegexBuilder::new().mk_regex_for_serach(&regex_to_lark(pattern, "dw"));
    result.map(|_| ()).map_err(|error| {
        let text = error.to_string();
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        let reason = lines
            .next_back()
            .unwrap_or("not a regular expression")
            .trim();
        unsupported(keyword, path, &format!("`{pattern}`: {reason}"))
    })
}
