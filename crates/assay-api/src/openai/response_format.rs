//! `response_format` and `structured_outputs`: the form that a reply must have. Whether it can be enforced is not known
//! here.

use serde_json::Value;

use super::tools::read_name;
use crate::error::FieldError;
use crate::fields::{Fields, wrong_type};
use crate::json;

/// Path of a `response_format`'s schema in a request.
const SCHEMA_PATH: &str = "response_format.json_schema.schema";

/// The form that a reply must have, and where the request says so.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplyForm {
    /// Path of the schema, expression or list.
    pub path: &'static str,
    /// The form.
    pub format: ResponseFormat,
}

/// The form that a reply must have.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ResponseFormat {
    /// Any text.
    #[default]
    Text,
    /// Any JSON object.
    JsonObject,
    /// JSON that is valid against this schema: an object or a boolean. Enforced whatever `strict` says.
    JsonSchema(Value),
    /// Text that this regular expression matches as a whole.
    Regex(String),
    /// One of these texts.
    Choice(Vec<String>),
    /// Text of this grammar, in llguidance's dialect of Lark.
    Grammar(String),
}

/// Reads both fields; appends paths of unknown ones inside them to `ignored`.
pub(super) fn read_form(
    body: &mut Fields,
    ignored: &mut Vec<String>,
) -> Result<ReplyForm, FieldError> {
    let format = read_response_format(body, ignored)?;
    let Some(form) = read_structured_outputs(body, ignored)? else {
        return Ok(ReplyForm {
            path: SCHEMA_PATH,
            format,
        });
    };
    if format != ResponseFormat::Text {
        let message =
            format!("`{STRUCTURED}`: may not stand beside a `response_format` of its own");
        return Err(FieldError::new(STRUCTURED, message));
    }
    Ok(form)
}

const STRUCTURED: &str = "structured_outputs";

fn read_structured_outputs(
    body: &mut Fields,
    ignored: &mut Vec<String>,
) -> Result<Option<ReplyForm>, FieldError> {
    let Some(mut fields) = body.object(STRUCTURED)? else {
        return Ok(None);
    };
    let mut found = Vec::new();
    if let Some(schema) = fields.take("json") {
        let format = ResponseFormat::JsonSchema(read_json_schema(schema)?);
        found.push(("structured_outputs.json", format));
    }
    if let Some(regex) = fields.string("regex")? {
        found.push(("structured_outputs.regex", ResponseFormat::Regex(regex)));
    }
    if let Some(options) = fields.array("choice")? {
        let format = ResponseFormat::Choice(read_options(options)?);
        found.push(("structured_outputs.choice", format));
    }
    if let Some(grammar) = fields.string("grammar")? {
        found.push((
            "structured_outputs.grammar",
            ResponseFormat::Grammar(grammar),
        ));
    }
    if fields.boolean("json_object")? == Some(true) {
        found.push(("structured_outputs.json_object", ResponseFormat::JsonObject));
    }
    // These would change what may come.
    for name in ["structural_tag", "whitespace_pattern"] {
        fields.refuse(name, "a value")?;
    }
    ignored.extend(fields.untaken());
    let num_found = found.len();
    match found.pop() {
        Some((path, format)) if num_found == 1 => Ok(Some(ReplyForm { path, format })),
        _ => {
            let message = format!(
                "`{STRUCTURED}`: must hold one of `json`, `regex`, `choice`, `grammar` and `json_object`, not {num_found}"
            );
            Err(FieldError::new(STRUCTURED, message))
        }
    }
}

/// A schema as it is, or written out in a string.
fn read_json_schema(value: Value) -> Result<Value, FieldError> {
    const PATH: &str = "structured_outputs.json";
    let schema = match value {
        Value::String(text) => json::parse(text.as_bytes()).map_err(|error| {
            let reason = error
                .message
                .replacen("the body", "the text in this string", 1);
            let message = format!("`{PATH}`: must be a JSON schema, or the text of one: {reason}");
            FieldError::new(PATH, message)
        })?,
        other => other,
    };
    match schema {
        schema @ (Value::Object(_) | Value::Bool(_)) => Ok(schema),
        other => Err(wrong_type(PATH, "a JSON schema", &other)),
    }
}

fn read_options(options: Vec<Value>) -> Result<Vec<String>, FieldError> {
    let numbered = options.into_iter().enumerate();
    let read = numbered.map(|(index, option)| match option {
        Value::String(text) => Ok(text),
        other => {
            let path = format!("structured_outputs.choice[{index}]");
            Err(wrong_type(&path, "a string", &other))
        }
    });
    read.collect()
}

fn read_response_format(
    body: &mut Fields,
    ignored: &mut Vec<String>,
) -> Result<ResponseFormat, FieldError> {
    let Some(mut format) = body.object("response_format")? else {
        return Ok(ResponseFormat::Text);
    };
    let read = match format.string("type")?.as_deref() {
        Some("text") => ResponseFormat::Text,
        Some("json_object") => {
            // Some servers take a schema here; passing it over would be no enforcement at all.
            format.refuse(
                "schema",
                "a schema of `json_object` (`json_schema` takes one)",
            )?;
            ResponseFormat::JsonObject
        }
        Some("json_schema") => {
            let path = format.path_of("json_schema");
            let Some(described) = format.object("json_schema")? else {
                return Err(FieldError::new(&path, format!("`{path}`: is required")));
            };
            ResponseFormat::JsonSchema(read_schema(described, ignored)?)
        }
        _ => {
            let path = format.path_of("type");
            let message = format!("`{path}`: must be \"text\", \"json_object\" or \"json_schema\"");
            return Err(FieldError::new(path, message));
        }
    };
    ignored.extend(format.untaken());
    Ok(read)
}

fn read_schema(mut described: Fields, ignored: &mut Vec<String>) -> Result<Value, FieldError> {
    read_name(&mut described)?;
    let _ = described.string("description")?;
    let _ = described.boolean("strict")?;
    let schema = match described.take("schema") {
        Some(schema @ (Value::Object(_) | Value::Bool(_))) => schema,
        Some(other) => return Err(wrong_type(SCHEMA_PATH, "a JSON schema", &other)),
        None => {
            let message = format!("`{SCHEMA_PATH}`: is required");
            return Err(FieldError::new(SCHEMA_PATH, message));
        }
    };
    ignored.extend(described.untaken());
    Ok(schema)
}
