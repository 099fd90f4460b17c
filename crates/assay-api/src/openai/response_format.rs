//! `response_format`: the form that a reply must have. Whether a schema can be enforced is not known here.

use serde_json::Value;

use super::tools::read_name;
use crate::error::FieldError;
use crate::fields::{Fields, wrong_type};

/// Path of the schema in a request.
pub const SCHEMA_PATH: &str = "response_format.json_schema.schema";

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
}

/// Reads `response_format`; appends paths of unknown fields to `ignored`.
pub(super) fn read_response_format(
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
            if format.take("schema").is_some() {
                let what = "a schema of `json_object` (`json_schema` takes one)";
                return Err(FieldError::unsupported(format.path_of("schema"), what));
            }
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
