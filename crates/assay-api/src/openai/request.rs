//! `POST /v1/chat/completions`, read strictly: every field has a type and a range, whatever needs the model
//! (ids, context) is left to the caller, unknown fields are listed.

use serde_json::{Map, Value};

use super::generation::{Dialect, GenerationParams, MAX_TOP_LOGPROBS, small};
use super::message::{ChatMessage, read_messages};
use super::refused;
use super::tools::{ToolChoice, read_tool_choice, read_tools};
use crate::error::FieldError;
use crate::fields::{Fields, integer_value, wrong_type};
use crate::json;

/// Longest `chat_template_kwargs`, written as JSON, in bytes.
pub const MAX_TEMPLATE_KWARGS_BYTES: usize = 65_536;

/// Names that a template gets from the server; a request may not replace them.
const TEMPLATE_NAMES: [&str; 7] = [
    "messages",
    "add_generation_prompt",
    "bos_token",
    "eos_token",
    "tools",
    "documents",
    "chat_template",
];

const DIALECT: Dialect = Dialect {
    read_top_logprobs,
    named_tokens: &["allowed_token_ids"],
};

/// A chat request whose fields are well-formed and in range.
#[derive(Clone, Debug, PartialEq)]
pub struct ChatCompletionRequest {
    /// Model asked for; `None` is the served one.
    pub model: Option<String>,
    /// 1 to [`super::message::MAX_MESSAGES`] messages.
    pub messages: Vec<ChatMessage>,
    /// Variables for the chat template.
    pub chat_template_kwargs: Map<String, Value>,
    /// How to reply.
    pub generation: GenerationParams,
    /// At most [`super::tools::MAX_TOOLS`] definitions, as they were sent.
    pub tools: Vec<Value>,
    /// Whether the model may call them.
    pub tool_choice: ToolChoice,
    /// Paths of fields that the server does not know.
    pub ignored: Vec<String>,
}

impl ChatCompletionRequest {
    /// Reads a request body.
    ///
    /// # Errors
    /// Not JSON, or the first field that is missing, of a wrong type, out of range or not supported.
    pub fn from_json(body: &[u8]) -> Result<Self, FieldError> {
        let mut body = Fields::new("", json::parse(body)?)?;
        let mut ignored = Vec::new();
        let request = Self {
            model: body.string("model")?,
            generation: GenerationParams::read(&mut body, &DIALECT, &mut ignored)?,
            chat_template_kwargs: read_template_kwargs(&mut body)?,
            tools: read_tools(&mut body)?,
            tool_choice: read_tool_choice(&mut body)?,
            messages: read_messages(&mut body, &mut ignored)?,
            ignored: Vec::new(),
        };
        refused::check(&mut body)?;
        ignored.splice(0..0, body.untaken());
        Ok(Self { ignored, ..request })
    }
}

/// `logprobs` switches, `top_logprobs` counts; an integer in place of the switch is the legacy form of both.
fn read_top_logprobs(body: &mut Fields) -> Result<Option<u32>, FieldError> {
    let switch = body.take("logprobs");
    let top_logprobs = body.integer("top_logprobs", 0..=MAX_TOP_LOGPROBS)?;
    let top_logprobs = match switch {
        None | Some(Value::Bool(false)) => {
            if top_logprobs.is_some_and(|k| k > 0) {
                return Err(FieldError::new(
                    "top_logprobs",
                    "`top_logprobs`: needs `logprobs: true`",
                ));
            }
            return Ok(None);
        }
        Some(Value::Bool(true)) => top_logprobs.unwrap_or(0),
        Some(value @ Value::Number(_)) => {
            let legacy = integer_value("logprobs", &value, 0..=MAX_TOP_LOGPROBS)?;
            if top_logprobs.is_some_and(|k| k != legacy) {
                return Err(FieldError::new(
                    "top_logprobs",
                    format!(
                        "`top_logprobs`: differs from `logprobs: {legacy}`, which asks for as many"
                    ),
                ));
            }
            legacy
        }
        Some(other) => return Err(wrong_type("logprobs", "true or false", &other)),
    };
    Ok(Some(small(top_logprobs)))
}

fn read_template_kwargs(body: &mut Fields) -> Result<Map<String, Value>, FieldError> {
    const NAME: &str = "chat_template_kwargs";
    let Some(fields) = body.object(NAME)? else {
        return Ok(Map::new());
    };
    let kwargs = fields.into_rest();
    if let Some(name) = TEMPLATE_NAMES
        .into_iter()
        .find(|name| kwargs.contains_key(*name))
    {
        let message = format!("`{NAME}`: may not replace `{name}`");
        return Err(FieldError::new(NAME, message));
    }
    let kwargs = Value::Object(kwargs);
    let written_bytes = kwargs.to_string().len();
    if written_bytes > MAX_TEMPLATE_KWARGS_BYTES {
        let message = format!(
            "`{NAME}`: must be at most {MAX_TEMPLATE_KWARGS_BYTES} bytes long, not {written_bytes}"
        );
        return Err(FieldError::new(NAME, message));
    }
    match kwargs {
        Value::Object(kwargs) => Ok(kwargs),
        other => Err(wrong_type(NAME, "an object", &other)),
    }
}
