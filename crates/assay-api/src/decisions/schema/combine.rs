//! Objects, alternatives that a constant property tells apart, and properties that depend on one.

use std::collections::BTreeSet;

use serde_json::Value;

use super::read::{Context, Reader, SchemaFields, value_text};
use super::{Condition, Node, Object, OneOf};
use crate::error::FieldError;
use crate::fields::wrong_type;

/// `type: object` with its properties and, where it has one, its condition.
pub(super) fn object(
    reader: &mut Reader,
    mut schema: SchemaFields,
    instructions: Option<String>,
    depth: usize,
) -> Result<Object, FieldError> {
    let Some((path, properties)) = schema.take("properties") else {
        return Err(schema.needed("properties", "the object's own; others are never answered"));
    };
    let properties = reader.properties(&path, properties, instructions, depth)?;
    let condition = match schema.take("if") {
        None => None,
        Some((path, test)) => {
            let (property, value) = test_of(&path, test)?;
            let asked = properties.iter().any(|(name, _)| *name == property);
            if !asked {
                let message =
                    format!("`{path}`: tests `{property}`, which is not a property of this object");
                return Err(FieldError::new(path, message));
            }
            let then = branch(reader, &mut schema, "then", depth)?;
            let otherwise = branch(reader, &mut schema, "else", depth)?;
            Some(Box::new(Condition {
                property,
                value,
                then,
                otherwise,
            }))
        }
    };
    let further = condition.iter().flat_map(|condition| {
        let then = condition.then.iter();
        then.chain(&condition.otherwise)
    });
    let further: Vec<&str> = further.map(|(name, _)| name.as_str()).collect();
    let names: BTreeSet<&str> = properties.iter().map(|(name, _)| name.as_str()).collect();
    if let Some(twice) = further.iter().find(|name| names.contains(*name)) {
        let message = format!("`{path}.{twice}`: stands in a branch of `if` as well");
        return Err(FieldError::new(format!("{path}.{twice}"), message));
    }
    let known = names.into_iter().chain(further).collect();
    check_required(&mut schema, &known)?;
    // Only declared properties are ever answered.
    let _ = schema
        .take("additionalProperties")
        .map(check_flag)
        .transpose()?;
    schema.finish()?;
    Ok(Object {
        properties,
        condition,
    })
}

fn check_flag((path, value): (String, Value)) -> Result<(), FieldError> {
    match value {
        Value::Bool(_) => Ok(()),
        other => Err(wrong_type(&path, "true or false", &other)),
    }
}

/// Required properties must be declared ones; all declared ones are answered.
fn check_required(schema: &mut SchemaFields, known: &BTreeSet<&str>) -> Result<(), FieldError> {
    let Some((path, names)) = schema.array("required")? else {
        return Ok(());
    };
    for name in names {
        match name.as_str() {
            Some(name) if known.contains(name) => {}
            Some(name) => {
                let message = format!("`{path}`: {name:?} is not among the declared properties");
                return Err(FieldError::new(path, message));
            }
            None => return Err(wrong_type(&path, "an array of names", &name)),
        }
    }
    Ok(())
}

/// The property and value that `if` tests: `{"properties": {"kind": {"const": ...}}}`.
fn test_of(path: &str, test: Value) -> Result<(String, Value), FieldError> {
    let mut test = SchemaFields::new(path, test)?;
    let Some((properties_path, Value::Object(properties))) = test.take("properties") else {
        return Err(test.needed("properties", "one property with a `const`"));
    };
    let mut properties = properties.into_iter();
    let (Some((name, schema)), None) = (properties.next(), properties.next()) else {
        let message = format!("`{properties_path}`: must hold one property with a `const`");
        return Err(FieldError::new(properties_path, message));
    };
    let mut schema = SchemaFields::new(&format!("{properties_path}.{name}"), schema)?;
    let Some((_, value)) = schema.take("const") else {
        return Err(schema.needed("const", "the value that is tested"));
    };
    schema.check_scalar("const", &value)?;
    schema.finish()?;
    check_required(&mut test, &BTreeSet::from([name.as_str()]))?;
    test.finish()?;
    Ok((name, value))
}

fn branch(
    reader: &mut Reader,
    schema: &mut SchemaFields,
    keyword: &str,
    depth: usize,
) -> Result<Vec<(String, Node)>, FieldError> {
    let Some((path, branch)) = schema.take(keyword) else {
        return Ok(Vec::new());
    };
    let mut branch = SchemaFields::new(&path, branch)?;
    let Some((path, properties)) = branch.take("properties") else {
        return Err(branch.needed("properties", "what the branch adds"));
    };
    let properties = reader.properties(&path, properties, None, depth)?;
    let known = properties.iter().map(|(name, _)| name.as_str()).collect();
    check_required(&mut branch, &known)?;
    branch.finish()?;
    Ok(properties)
}

/// `oneOf` over objects that a constant property tells apart.
pub(super) fn one_of(
    reader: &mut Reader,
    mut schema: SchemaFields,
    instructions: Option<String>,
    depth: usize,
) -> Result<Node, FieldError> {
    let Some((path, branches)) = schema.array("oneOf")? else {
        return Err(schema.needed("oneOf", "objects"));
    };
    let schema_path = schema.path().to_owned();
    if let Some((path, kind)) = schema.string("type")?
        && kind != "object"
    {
        return Err(FieldError::unsupported(
            path,
            "any type but \"object\" beside `oneOf`",
        ));
    }
    schema.finish()?;
    let Some(tag) = tag_of(&branches) else {
        let message = format!(
            "`{path}`: its branches must be objects with one property that is a different `const` in each"
        );
        return Err(FieldError::new(path, message));
    };
    let mut values = Vec::with_capacity(branches.len());
    let mut objects = Vec::with_capacity(branches.len());
    for (index, mut branch) in branches.into_iter().enumerate() {
        let tagged = branch
            .get_mut("properties")
            .and_then(Value::as_object_mut)
            .and_then(|properties| properties.shift_remove(&tag));
        values.push(
            tagged
                .and_then(|tagged| tagged.get("const").cloned())
                .unwrap_or(Value::Null),
        );
        // The tag is answered by the choice of the branch.
        if let Some(Value::Array(required)) = branch.get_mut("required") {
            required.retain(|name| name.as_str() != Some(&tag));
        }
        let branch = SchemaFields::new(&format!("{path}[{index}]"), branch)?;
        objects.push(branch_object(reader, branch, depth)?);
    }
    let instructions = Some(match instructions {
        Some(above) => above,
        None => tag.clone(),
    });
    let field = reader.choice(schema_path, instructions, &path, values)?;
    Ok(Node::OneOf(OneOf {
        tag,
        field,
        branches: objects,
    }))
}

fn branch_object(
    reader: &mut Reader,
    branch: SchemaFields,
    depth: usize,
) -> Result<Object, FieldError> {
    let path = branch.path().to_owned();
    let context = Context {
        name: None,
        above: None,
        depth: depth + 1,
    };
    match reader.node(branch, context)? {
        Node::Object(object) => Ok(object),
        _ => Err(FieldError::unsupported(
            path,
            "a branch that is not an object",
        )),
    }
}

/// The first property that is a constant in every branch, and in each another.
fn tag_of(branches: &[Value]) -> Option<String> {
    let properties = |branch: &Value| branch.get("properties").and_then(Value::as_object).cloned();
    let first = properties(branches.first()?)?;
    let is_tag = |name: &&String| {
        let constants = branches.iter().map(|branch| {
            let value = branch.get("properties")?.get(name.as_str())?.get("const")?;
            Some(value_text(value))
        });
        let constants: Option<BTreeSet<String>> = constants.collect();
        constants.is_some_and(|constants| constants.len() == branches.len())
    };
    first.keys().find(is_tag).cloned()
}
