//! The keywords of JSON Schema: where schemas stand inside a schema, and what cannot be enforced.

use serde_json::Value;

use super::pointer::member_path;

/// What a keyword's value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A schema, or a list of them: an applicator.
    Schemas,
    /// Schemas by name.
    NamedSchemas,
    /// A plain value that asserts something.
    Assertion,
    /// Asserts something that no mask can enforce here.
    Unsupported(&'static str),
    /// Says nothing about values. By JSON Schema's rule this includes every unknown keyword.
    Annotation,
}

const NO_STATE: &str = "it needs to look back at the whole value";
const NO_NEGATION: &str = "its opposite has no grammar";
const NO_SCOPE: &str = "only references within the document (`#/…`) are followed";

/// The role of `keyword`.
pub(super) fn role(keyword: &str) -> Role {
    match keyword {
        "anyOf"
        | "oneOf"
        | "allOf"
        | "prefixItems"
        | "items"
        | "additionalItems"
        | "additionalProperties" => Role::Schemas,
        "properties" | "patternProperties" | "$defs" | "definitions" => Role::NamedSchemas,
        "$ref" | "$schema" | "$id" | "const" | "enum" | "type" | "minItems" | "maxItems"
        | "uniqueItems" | "required" | "minProperties" | "maxProperties" | "minLength"
        | "maxLength" | "pattern" | "format" | "minimum" | "maximum" | "exclusiveMinimum"
        | "exclusiveMaximum" | "multipleOf" => Role::Assertion,
        "not" | "if" | "then" | "else" => Role::Unsupported(NO_NEGATION),
        "contains"
        | "minContains"
        | "maxContains"
        | "unevaluatedItems"
        | "unevaluatedProperties"
        | "propertyNames"
        | "dependencies"
        | "dependentRequired"
        | "dependentSchemas" => Role::Unsupported(NO_STATE),
        "$dynamicRef" | "$dynamicAnchor" | "$recursiveRef" | "$recursiveAnchor" => {
            Role::Unsupported(NO_SCOPE)
        }
        _ => Role::Annotation,
    }
}

/// The schemas that stand directly inside `schema`, with their paths.
pub(super) fn subschemas<'a>(schema: &'a Value, path: &str) -> Vec<(&'a Value, String)> {
    let mut found = Vec::new();
    let Value::Object(members) = schema else {
        return found;
    };
    for (keyword, value) in members {
        let path = member_path(path, keyword);
        match (role(keyword), value) {
            (Role::Schemas, Value::Array(items)) => found.extend(
                items
                    .iter()
                    .enumerate()
                    .map(|(index, item)| (item, format!("{path}[{index}]"))),
            ),
            (Role::Schemas, value) => found.push((value, path)),
            (Role::NamedSchemas, Value::Object(named)) => found.extend(
                named
                    .iter()
                    .map(|(name, value)| (value, member_path(&path, name))),
            ),
            _ => {}
        }
    }
    found
}

/// The same for changing them in place.
pub(super) fn subschemas_mut(schema: &mut Value) -> Vec<&mut Value> {
    let mut found = Vec::new();
    let Value::Object(members) = schema else {
        return found;
    };
    for (keyword, value) in members {
        match (role(keyword), value) {
            (Role::Schemas, Value::Array(items)) => found.extend(items),
            (Role::Schemas, value) => found.push(value),
            (Role::NamedSchemas, Value::Object(named)) => found.extend(named.values_mut()),
            _ => {}
        }
    }
    found
}
