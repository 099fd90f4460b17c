//! What a chat template renders: messages, tools and the template's variables.

use serde_json::{Map, Value};

use super::message::{ChatMessage, read_messages};
use super::reasoning::ReasoningParams;
use super::tools::{Tools, read_tools};
use crate::error::FieldError;
use crate::fields::{Fields, wrong_type};

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

/// A conversation, as far as it is well-formed.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversation {
    /// 1 to [`super::message::MAX_MESSAGES`] messages.
    pub messages: Vec<ChatMessage>,
    /// Variables for the chat template.
    pub chat_template_kwargs: Map<String, Value>,
    /// What the model may call.
    pub tools: Tools,
    /// How much it may think.
    pub reasoning: ReasoningParams,
}

impl Conversation {
    /// Takes the fields of a conversation; appends paths of unknown ones inside them to `ignored`.
    pub(crate) fn read(body: &mut Fields, ignored: &mut Vec<String>) -> Result<Self, FieldError> {
        Ok(Self {
            chat_template_kwargs: read_template_kwargs(body)?,
            tools: read_tools(body)?,
            reasoning: ReasoningParams::read(body)?,
            messages: read_messages(body, ignored)?,
        })
    }
}

pub(crate) fn read_template_kwargs(body: &mut Fields) -> Result<Map<String, Value>, FieldError> {
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
