//! Calls of tools as texts that a mask can enforce: each format's frame around arguments with a schema.

use assay_api::FieldError;
use assay_api::openai::{Tool, ToolChoice, Tools};
use assay_constrain::Shape;
use assay_engine::ToolCallFormat;
use assay_engine::output::format::TOOL_CALL_TAGS;
use serde_json::{Map, Value, json};

use super::tool_calls::is_text;

/// The calls that a reply may be, in a format.
///
/// # Errors
/// The format cannot write arguments of such a schema so that they are sure to be valid; names its path.
pub(crate) fn calls(tools: &Tools, format: &ToolCallFormat) -> Result<Shape, FieldError> {
    let named = |tool: &&Tool| match &tools.choice {
        ToolChoice::Named(name) => tool.name == *name,
        _ => true,
    };
    let one = tools.tools.iter().filter(named);
    let one = one.map(|tool| {
        let (opening, rest) = call(tool, format)?;
        Ok(Shape::Sequence(vec![literal(opening), rest]))
    });
    let one = Shape::Choice(one.collect::<Result<_, FieldError>>()?);
    if tools.at_most_one_call || matches!(tools.choice, ToolChoice::Named(_)) {
        return Ok(one);
    }
    let separator = match format {
        ToolCallFormat::Hermes | ToolCallFormat::QwenXml => "\n",
        ToolCallFormat::Llama3Json { .. } => "; ",
    };
    Ok(Shape::Repeated {
        shape: Box::new(one),
        separator: separator.to_owned(),
    })
}

/// What must follow the opening tag of a call.
///
/// # Errors
/// As [`calls`], or the format has no tags.
pub(crate) fn bodies(tools: &Tools, format: &ToolCallFormat) -> Result<Shape, FieldError> {
    if let (ToolCallFormat::Llama3Json { .. }, Some(strict)) =
        (format, tools.tools.iter().find(|tool| tool.is_strict))
    {
        let holder = strict.parameters_path.rsplit_once('.');
        let path = format!("{}.strict", holder.map_or("tools", |(holder, _)| holder));
        let what = "true with `tool_choice: \"auto\"` in the way this model writes calls";
        return Err(FieldError::unsupported(path, what));
    }
    let bodies = tools.tools.iter().map(|tool| Ok(call(tool, format)?.1));
    Ok(Shape::Choice(bodies.collect::<Result<_, FieldError>>()?))
}

/// How a call of `tool` opens, and what follows.
fn call(tool: &Tool, format: &ToolCallFormat) -> Result<(&'static str, Shape), FieldError> {
    let name = json!(tool.name);
    let (open, close) = TOOL_CALL_TAGS;
    let json_call = |before: String, after: String| {
        let parts = [literal(&before), arguments(tool), literal(&after)];
        Shape::Sequence(parts.into())
    };
    Ok(match format {
        ToolCallFormat::Hermes => {
            let frame = format!("\n{{\"name\": {name}, \"arguments\": ");
            (open, json_call(frame, format!("}}\n{close}")))
        }
        ToolCallFormat::Llama3Json { .. } => {
            let frame = format!("\"name\": {name}, \"parameters\": ");
            ("{", json_call(frame, "}".to_owned()))
        }
        ToolCallFormat::QwenXml => {
            let mut parts = vec![literal(&format!("\n<function={}>\n", tool.name))];
            parts.extend(xml_parameters(tool)?);
            parts.push(literal(&format!("</function>\n{close}")));
            (open, Shape::Sequence(parts))
        }
    })
}

/// Arguments are an object, whatever else their schema says.
fn arguments(tool: &Tool) -> Shape {
    let schema = match &tool.parameters {
        Some(Value::Object(members)) if members.contains_key("type") => json!(members),
        Some(Value::Object(members)) => {
            let mut members = members.clone();
            members.insert("type".to_owned(), json!("object"));
            Value::Object(members)
        }
        _ => json!({"type": "object"}),
    };
    Shape::Json {
        schema,
        path: tool.parameters_path.clone(),
    }
}

/// What the object of a call's arguments may say where each argument is written by itself.
const OBJECT_KEYWORDS: [&str; 10] = [
    "$defs",
    "$schema",
    "additionalProperties",
    "definitions",
    "description",
    "properties",
    "required",
    "strict",
    "title",
    "type",
];
/// What a text that is written bare may say beside its choices.
const TEXT_KEYWORDS: [&str; 7] = [
    "const",
    "default",
    "description",
    "enum",
    "examples",
    "title",
    "type",
];

fn xml_parameters(tool: &Tool) -> Result<Vec<Shape>, FieldError> {
    let none = Map::new();
    let schema = match &tool.parameters {
        Some(Value::Object(members)) => members,
        _ => &none,
    };
    let path = &tool.parameters_path;
    if let Some(keyword) = keyword_outside(schema, &OBJECT_KEYWORDS) {
        return Err(cannot(format!("{path}.{keyword}")));
    }
    if schema.get("type").is_some_and(|kind| kind != "object") {
        return Err(cannot(format!("{path}.type")));
    }
    let properties = match schema.get("properties") {
        None => &none,
        Some(Value::Object(properties)) => properties,
        Some(_) => return Err(cannot(format!("{path}.properties"))),
    };
    let required: Vec<&str> = match schema.get("required") {
        None => Vec::new(),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        Some(_) => return Err(cannot(format!("{path}.required"))),
    };
    if required.iter().any(|name| !properties.contains_key(*name)) {
        return Err(cannot(format!("{path}.required")));
    }
    let shapes = properties.iter().map(|(name, property)| {
        let path = format!("{path}.properties.{name}");
        let parameter = xml_parameter(name, property, schema, path)?;
        Ok(if required.contains(&name.as_str()) {
            parameter
        } else {
            Shape::Optional(Box::new(parameter))
        })
    });
    shapes.collect()
}

fn xml_parameter(
    name: &str,
    property: &Value,
    schema: &Map<String, Value>,
    path: String,
) -> Result<Shape, FieldError> {
    if name.contains(['>', '<', '\n']) {
        return Err(cannot(path));
    }
    let close = "\n</parameter>\n";
    let value = match property {
        Value::Object(members) if is_text(property) => {
            if let Some(keyword) = keyword_outside(members, &TEXT_KEYWORDS) {
                return Err(cannot(format!("{path}.{keyword}")));
            }
            text_value(property, close).ok_or_else(|| cannot(path))?
        }
        _ => {
            let value = Shape::Json {
                schema: with_definitions(property, schema),
                path,
            };
            Shape::Sequence(vec![value, literal(close)])
        }
    };
    let open = literal(&format!("<parameter={name}>\n"));
    Ok(Shape::Sequence(vec![open, value]))
}

fn keyword_outside<'a>(schema: &'a Map<String, Value>, known: &[&str]) -> Option<&'a str> {
    let mut keywords = schema.keys().map(String::as_str);
    keywords.find(|keyword| !known.contains(keyword))
}

fn cannot(path: String) -> FieldError {
    FieldError::unsupported(path, "enforcing this in the way this model writes calls")
}

/// A bare text up to `close`; `None` where one of its choices holds that.
fn text_value(schema: &Value, close: &str) -> Option<Shape> {
    let choices = match (schema.get("const"), schema.get("enum")) {
        (Some(Value::String(text)), _) => vec![text.as_str()],
        (None, Some(Value::Array(values))) => values.iter().filter_map(Value::as_str).collect(),
        _ => return Some(Shape::TextUntil(close.to_owned())),
    };
    let is_plain = |text: &&str| !text.contains("</parameter>");
    if choices.is_empty() || !choices.iter().all(is_plain) {
        return None;
    }
    let choices = choices
        .into_iter()
        .map(|text| literal(&format!("{text}{close}")));
    Some(Shape::Choice(choices.collect()))
}

/// A property with the definitions that its references may name.
fn with_definitions(property: &Value, schema: &Map<String, Value>) -> Value {
    let Value::Object(property) = property else {
        return property.clone();
    };
    let mut members = property.clone();
    for name in ["$defs", "definitions"] {
        if let Some(definitions) = schema.get(name) {
            members.insert(name.to_owned(), definitions.clone());
        }
    }
    Value::Object(members)
}

fn literal(text: &str) -> Shape {
    Shape::Literal(text.to_owned())
}
