//! `tools` and `tool_choice`: functions that the model may be told of.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::error::FieldError;
use crate::fields::{Fields, wrong_type};
use crate::json as json_text;

/// Most tools in one request.
pub const MAX_TOOLS: usize = 128;
/// Longest name of a function or a schema, in bytes.
pub const MAX_NAME_BYTES: usize = 64;

/// Whether the model may call a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// It may.
    #[default]
    Auto,
    /// It may not: whatever it writes is text.
    None,
    /// It must call one at least.
    Required,
    /// It must call this one, once.
    Named(String),
}

impl ToolChoice {
    /// Whether the reply is nothing but calls.
    pub fn is_forced(&self) -> bool {
        matches!(self, Self::Required | Self::Named(_))
    }
}

/// A function that the model may be told of.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// Its definition, in the form of a chat's `tools`.
    pub definition: Value,
    /// Its name; no other tool has it.
    pub name: String,
    /// Schema of its arguments; `None` takes any object.
    pub parameters: Option<Value>,
    /// Whether a call's arguments must be valid.
    pub is_strict: bool,
    /// Path of the schema in the request.
    pub parameters_path: String,
}

/// `tools`, and how they may be called.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tools {
    /// At most [`MAX_TOOLS`].
    pub tools: Vec<Tool>,
    /// Whether the model may call them.
    pub choice: ToolChoice,
    /// Whether it may call one at most.
    pub at_most_one_call: bool,
}

impl Tool {
    /// Reads a function's name, description, parameters and strictness; `define` makes its definition of these members.
    pub(super) fn read(
        mut function: Fields,
        define: impl FnOnce(Value) -> Value,
    ) -> Result<Self, FieldError> {
        let name = read_name(&mut function)?;
        let description = function.string("description")?;
        let parameters_path = function.path_of("parameters");
        let parameters = function.object("parameters")?;
        let parameters = parameters.map(|fields| Value::Object(fields.into_rest()));
        let is_strict = function.boolean("strict")?.unwrap_or(false);
        let mut members = Map::new();
        members.insert("name".to_owned(), json!(name));
        members.extend(description.map(|text| ("description".to_owned(), json!(text))));
        members.extend(
            parameters
                .clone()
                .map(|schema| ("parameters".to_owned(), schema)),
        );
        Ok(Self {
            definition: define(Value::Object(members)),
            name,
            parameters,
            is_strict,
            parameters_path,
        })
    }
}

impl Tools {
    /// The tool called `name`.
    pub fn get(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}

/// Reads `tools`, `tool_choice` and `parallel_tool_calls` of a chat.
pub(super) fn read_tools(body: &mut Fields) -> Result<Tools, FieldError> {
    read_tools_of(body, read_tool)
}

/// Reads these fields where `read` knows how a tool is written.
pub(super) fn read_tools_of(
    body: &mut Fields,
    read: fn(String, Value) -> Result<Tool, FieldError>,
) -> Result<Tools, FieldError> {
    let definitions = body.array("tools")?.unwrap_or_default();
    let tools = unique(definitions, read)?;
    let choice = read_tool_choice(body, &tools)?;
    let at_most_one_call = body.boolean("parallel_tool_calls")? == Some(false);
    Ok(Tools {
        tools,
        choice,
        at_most_one_call,
    })
}

/// Reads tool definitions, no two of one name.
pub(crate) fn unique(
    definitions: Vec<Value>,
    read: fn(String, Value) -> Result<Tool, FieldError>,
) -> Result<Vec<Tool>, FieldError> {
    if definitions.len() > MAX_TOOLS {
        let message = format!(
            "`tools`: must hold at most {MAX_TOOLS} tools, not {}",
            definitions.len()
        );
        return Err(FieldError::new("tools", message));
    }
    let mut names = BTreeSet::new();
    let mut tools = Vec::with_capacity(definitions.len());
    for (index, definition) in definitions.into_iter().enumerate() {
        let tool = read(format!("tools[{index}]"), definition)?;
        if !names.insert(tool.name.clone()) {
            let place = tool.parameters_path.rsplit_once('.');
            let path = format!("{}.name", place.map_or("tools", |(place, _)| place));
            let message = format!("`{path}`: another tool has this name");
            return Err(FieldError::new(path, message));
        }
        tools.push(tool);
    }
    Ok(tools)
}

fn read_tool(path: String, definition: Value) -> Result<Tool, FieldError> {
    let mut fields = Fields::new(path, definition.clone())?;
    let path = fields.path_of("type");
    match fields.string("type")?.as_deref() {
        Some("function") => {}
        Some(_) => return Err(FieldError::unsupported(path, "any type but \"function\"")),
        None => return Err(FieldError::new(&path, format!("`{path}`: is required"))),
    }
    let path = fields.path_of("function");
    let Some(function) = fields.object("function")? else {
        return Err(FieldError::new(&path, format!("`{path}`: is required")));
    };
    Tool::read(function, |_| definition)
}

/// Reads `tool_choice`, which may ask for what `tools` has.
fn read_tool_choice(body: &mut Fields, tools: &[Tool]) -> Result<ToolChoice, FieldError> {
    const NAME: &str = "tool_choice";
    let choice = match body.take(NAME) {
        None => return Ok(ToolChoice::Auto),
        Some(Value::String(choice)) => match choice.as_str() {
            "auto" => ToolChoice::Auto,
            "none" => ToolChoice::None,
            "required" => ToolChoice::Required,
            _ => {
                let message = "`tool_choice`: must be \"auto\", \"none\", \"required\" or a tool";
                return Err(FieldError::new(NAME, message));
            }
        },
        Some(named @ Value::Object(_)) => ToolChoice::Named(read_named(named)?),
        Some(other) => return Err(wrong_type(NAME, "a string or an object", &other)),
    };
    check_choice(&choice, tools)?;
    Ok(choice)
}

/// Refuses a choice that no tool of `tools` can satisfy.
pub(crate) fn check_choice(choice: &ToolChoice, tools: &[Tool]) -> Result<(), FieldError> {
    const NAME: &str = "tool_choice";
    match choice {
        ToolChoice::Required if tools.is_empty() => Err(FieldError::new(
            NAME,
            "`tool_choice`: there are no `tools` to call",
        )),
        ToolChoice::Named(name) if !tools.iter().any(|tool| tool.name == *name) => {
            let message = format!(
                "`tool_choice`: no tool is called {}",
                json_text::quote(name)
            );
            Err(FieldError::new(NAME, message))
        }
        _ => Ok(()),
    }
}

fn read_named(choice: Value) -> Result<String, FieldError> {
    let mut fields = Fields::new("tool_choice", choice)?;
    let path = fields.path_of("type");
    match fields.string("type")?.as_deref() {
        Some("function") => {}
        Some(_) => return Err(FieldError::unsupported(path, "any type but \"function\"")),
        None => return Err(FieldError::new(&path, format!("`{path}`: is required"))),
    }
    match fields.object("function")? {
        Some(mut function) => read_name(&mut function),
        // The Responses API has the name one level further out.
        None => read_name(&mut fields),
    }
}

/// Reads the required `name` of a function or a schema.
pub(crate) fn read_name(fields: &mut Fields) -> Result<String, FieldError> {
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
        json_text::quote(&name)
    );
    Err(FieldError::new(path, message))
}
