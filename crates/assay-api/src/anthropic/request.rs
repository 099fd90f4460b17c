//! `POST /v1/messages` and `/v1/messages/count_tokens`, read strictly.

use serde_json::{Map, Value, json};

use super::content::read_messages;
use crate::error::FieldError;
use crate::fields::{Fields, NumberRange, wrong_type};
use crate::json as json_text;
use crate::openai::conversation::read_template_kwargs;
use crate::openai::generation::{Dialect, GenerationParams};
use crate::openai::message::required;
use crate::openai::reasoning::read_effort;
use crate::openai::tools::{check_choice, read_name, unique};
use crate::openai::{Conversation, ReasoningEffort, ReasoningParams, Tool, ToolChoice, Tools};
use crate::record;

/// Accepted with any value: they change neither tokens nor scores.
const HARMLESS: &[&str] = &["cache_control", "metadata", "service_tier"];

/// Known, and not done.
const REFUSED: &[&str] = &[
    "container",
    "context_management",
    "mcp_servers",
    "output_format",
];

/// Fields of chat requests that mean the same here.
const SHARED: &[&str] = &["cache_salt", "seed", "stream", "top_k", "top_p"];

const DIALECT: Dialect = Dialect {
    read_top_logprobs: |_| Ok(None),
    named_tokens: &[],
};

/// A request whose fields are well-formed and in range.
#[derive(Clone, Debug, PartialEq)]
pub struct MessagesRequest {
    /// Model asked for.
    pub model: Option<String>,
    /// What was said, in the words of a chat.
    pub conversation: Conversation,
    /// How to reply.
    pub generation: GenerationParams,
    /// Paths of fields that the server does not know.
    pub ignored: Vec<String>,
}

/// Which of the two routes a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    Messages,
    CountTokens,
}

impl MessagesRequest {
    /// Reads a request for a message.
    ///
    /// # Errors
    /// Not JSON, or the first field that is missing, of a wrong type, out of range or not supported.
    pub fn from_json(body: &[u8]) -> Result<Self, FieldError> {
        Self::read(body, Route::Messages)
    }

    /// Reads a request for a count of tokens: the same without a limit of the reply.
    ///
    /// # Errors
    /// As [`MessagesRequest::from_json`].
    pub fn to_count(body: &[u8]) -> Result<Self, FieldError> {
        Self::read(body, Route::CountTokens)
    }

    fn read(body: &[u8], route: Route) -> Result<Self, FieldError> {
        let mut body = Fields::new("", json_text::parse(body)?)?;
        let mut ignored = Vec::new();
        let model = body.string("model")?;
        let max_tokens = body.integer("max_tokens", 1..=i64::MAX)?;
        if max_tokens.is_none() && route == Route::Messages {
            return Err(FieldError::new("max_tokens", "`max_tokens`: is required"));
        }
        let (effort, format) = read_output_config(&mut body, &mut ignored)?;
        let mut generation = read_generation(&mut body, format)?;
        generation.max_tokens = max_tokens.map(|limit| ("max_tokens", limit));
        let conversation = Conversation {
            tools: read_tools(&mut body, &mut ignored)?,
            reasoning: read_thinking(&mut body, effort)?,
            chat_template_kwargs: read_template_kwargs(&mut body)?,
            messages: read_messages(&mut body, &mut ignored)?,
        };
        body.harmless(HARMLESS);
        for name in REFUSED {
            body.refuse(name, "this field")?;
        }
        ignored.splice(0..0, body.untaken());
        Ok(Self {
            model,
            conversation,
            generation,
            ignored,
        })
    }
}

/// The fields that chat requests have as well, read as theirs.
fn read_generation(
    body: &mut Fields,
    format: Option<Value>,
) -> Result<GenerationParams, FieldError> {
    let mut shared = body.part(SHARED);
    let has_format = format.is_some();
    if let Some(format) = format {
        shared.insert("response_format".to_owned(), format);
    }
    if let Some(value) = body.number("temperature", NumberRange::closed(0.0, 1.0))? {
        shared.insert("temperature".to_owned(), json!(value));
    }
    match body.take("stop_sequences") {
        None => {}
        Some(stops @ Value::Array(_)) => {
            shared.insert("stop".to_owned(), stops);
        }
        Some(other) => return Err(wrong_type("stop_sequences", "an array", &other)),
    }
    let mut shared = Fields::new("", Value::Object(shared))?;
    let read = record::within(SHARED, || {
        GenerationParams::read(&mut shared, &DIALECT, &mut Vec::new())
    });
    let mut generation = read.map_err(in_own_words)?;
    if has_format {
        generation.form.path = "output_config.format.schema";
    }
    Ok(generation)
}

/// A fault of a field that a chat calls otherwise.
fn in_own_words(error: FieldError) -> FieldError {
    let names = [
        ("response_format.json_schema", "output_config.format"),
        ("stop", "stop_sequences"),
    ];
    let param = error.param.clone().unwrap_or_default();
    match names.iter().find(|(chat, _)| param.starts_with(chat)) {
        None => error,
        Some((chat, own)) => FieldError {
            param: Some(param.replacen(chat, own, 1)),
            message: error.message.replacen(chat, own, 1),
        },
    }
}

/// `output_config`: how hard to think, and the format of the text as a chat's `response_format`.
fn read_output_config(
    body: &mut Fields,
    ignored: &mut Vec<String>,
) -> Result<(Option<ReasoningEffort>, Option<Value>), FieldError> {
    let Some(mut config) = body.object("output_config")? else {
        return Ok((None, None));
    };
    let effort = read_effort(&mut config, "effort")?;
    let format = config.object("format")?;
    ignored.extend(config.untaken());
    let Some(mut format) = format else {
        return Ok((effort, None));
    };
    let path = format.path_of("type");
    if format.string("type")?.as_deref() != Some("json_schema") {
        let message = format!("`{path}`: must be \"json_schema\"");
        return Err(FieldError::new(path, message));
    }
    let described = json!({"name": "output", "schema": format.take("schema")});
    ignored.extend(format.untaken());
    let chat = json!({"type": "json_schema", "json_schema": described});
    Ok((effort, Some(chat)))
}

/// `thinking`: off unless it is asked for.
fn read_thinking(
    body: &mut Fields,
    effort: Option<ReasoningEffort>,
) -> Result<ReasoningParams, FieldError> {
    let off = ReasoningParams {
        effort: Some(ReasoningEffort::None),
        budget: None,
    };
    let Some(mut thinking) = body.object("thinking")? else {
        return Ok(off);
    };
    let path = thinking.path_of("type");
    let budget = thinking.integer("budget_tokens", 1..=i64::from(u32::MAX))?;
    match thinking.string("type")?.as_deref() {
        Some("disabled") => Ok(off),
        Some("enabled" | "adaptive") => Ok(ReasoningParams {
            effort,
            budget: budget.and_then(|budget| u32::try_from(budget).ok()),
        }),
        _ => {
            let message = format!("`{path}`: must be \"enabled\", \"adaptive\" or \"disabled\"");
            Err(FieldError::new(path, message))
        }
    }
}

fn read_tools(body: &mut Fields, ignored: &mut Vec<String>) -> Result<Tools, FieldError> {
    let definitions = body.array("tools")?.unwrap_or_default();
    let tools = unique(definitions, read_tool)?;
    let mut at_most_one_call = false;
    let choice = match body.object("tool_choice")? {
        None => ToolChoice::Auto,
        Some(mut choice) => {
            at_most_one_call = choice.boolean("disable_parallel_tool_use")? == Some(true);
            let path = choice.path_of("type");
            let read = match choice.string("type")?.as_deref() {
                Some("auto") => ToolChoice::Auto,
                Some("any") => ToolChoice::Required,
                Some("none") => ToolChoice::None,
                Some("tool") => ToolChoice::Named(required(&mut choice, "name")?),
                _ => {
                    let message =
                        format!("`{path}`: must be \"auto\", \"any\", \"tool\" or \"none\"");
                    return Err(FieldError::new(path, message));
                }
            };
            ignored.extend(choice.untaken());
            read
        }
    };
    check_choice(&choice, &tools)?;
    Ok(Tools {
        tools,
        choice,
        at_most_one_call,
    })
}

/// A tool, with its definition as templates know it.
fn read_tool(path: String, definition: Value) -> Result<Tool, FieldError> {
    let mut fields = Fields::new(path, definition)?;
    let kind_path = fields.path_of("type");
    if !matches!(fields.string("type")?.as_deref(), None | Some("custom")) {
        return Err(FieldError::unsupported(
            kind_path,
            "any type but \"custom\"",
        ));
    }
    let name = read_name(&mut fields)?;
    let description = fields.string("description")?;
    let parameters_path = fields.path_of("input_schema");
    let Some(parameters) = fields.object("input_schema")? else {
        let message = format!("`{parameters_path}`: is required");
        return Err(FieldError::new(parameters_path, message));
    };
    let is_strict = fields.boolean("strict")?.unwrap_or(false);
    let parameters = Value::Object(parameters.into_rest());
    let mut function = Map::new();
    function.insert("name".to_owned(), json!(name));
    if let Some(description) = description {
        function.insert("description".to_owned(), json!(description));
    }
    function.insert("parameters".to_owned(), parameters.clone());
    Ok(Tool {
        definition: json!({"type": "function", "function": function}),
        name,
        parameters: Some(parameters),
        is_strict,
        parameters_path,
    })
}
