//! `tools` and `tool_choice`: functions that the model may be told of.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::error::FieldError;
use crate::fields::{Fields, wrong_type};
use crate::json;

/// Most tools in one request.
pub const MAX_TOOLS: usize = 128;
/// Longest name of a function or a schema, in bytes.
pub const MAX_NAME_BYTES: usize = 64;

/// Whether the model may call a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// It may.
    #[default]
    Auto,
    /// It may not: whatever it writes is text.
    None,
}

/// Reads `tools`: well-formed definitions, as they were sent.
pub(super) fn read_tools(body: &mut Fields) -> Result<Vec<Value>, FieldError> {
    let tools = body.array("tools")?.unwrap_or_default();
    if tools.len() > MAX_TOOLS {
        let message = format!(
            "`tools`: must hold at most {MAX_TOOLS} tools, not {}",
            tools.len()
        );
        return Err(FieldError::new("tools", message));
    }
    let mut names = BTreeSet::new();
    for (index, tool) in tools.iter().enumerate() {
        let mut fields = Fields::new(format!("tools[{index}]"), tool.clone())?;
        let name = check_tool(&mut fields)?;
        if !names.insert(name) {
            let path = format!("tools[{index}].function.name");
            let message = format!("`{path}`: another tool has this name");
            return Err(FieldError::new(path, message));
        }
    }
    Ok(tools)
}

/// The function's name.
fn check_tool(fields: &mut Fields) -> Result<String, FieldError> {
    let path = fields.path_of("type");
    match fields.string("type")?.as_deref() {
        Some("function") => {}
        Some(_) => return Err(FieldError::unsupported(path, "any type but \"function\"")),
        None => return Err(FieldError::new(&path, format!("`{path}`: is required"))),
    }
    let path = fields.path_of("function");
    let Some(mut function) = fields.object("function")? else {
        return Err(FieldError::new(&path, format!("`{path}`: is required")));
    };
    let name = read_name(&mut function)?;
    let _ = function.string("description")?;
    let _ = function.object("parameters")?;
    let _ = function.boolean("strict")?;
    Ok(name)
}

/// Reads `tool_choice`.
pub(super) fn read_tool_choice(body: &mut Fields) -> Result<ToolChoice, FieldError> {
    match body.take("tool_choice") {
        None => Ok(ToolChoice::Auto),
        Some(Value::String(choice)) => match choice.as_str() {
            "auto" => Ok(ToolChoice::Auto),
            "none" => Ok(ToolChoice::None),
            "required" => Err(FieldError::unsupported("tool_choice", "\"required\"")),
            _ => {
                let message = "`tool_choice`: must be \"auto\", \"none\", \"required\" or a tool";
                Err(FieldError::new("tool_choice", message))
            }
        },
        Some(Value::Object(_)) => Err(FieldError::unsupported("tool_choice", "a named tool")),
        Some(other) => Err(wrong_type("tool_choice", "a string or an object", &other)),
    }
}

/// Reads the required `name` of a function or a schema.
pub(super) fn read_name(fields: &mut Fields) -> Result<String, FieldError> {
    let path = fields.path_of("name");
    let Some(name) = fields.string("name")? else {
        return Err(FieldError::new(&path, format!("`{path}`: is required")));
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_plain) {
        return Ok(name);
    }
    let message = format!(
        "`{path}`: must be 1 to {MAX_NAME_BYTES} letters, digits, `_` or `-`, not {}",
        json::quote(&name)
    );
    Err(FieldError::new(path, message))
}
