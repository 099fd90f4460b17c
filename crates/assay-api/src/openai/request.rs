//! `POST /v1/chat/completions`, read strictly: every field has a type and a range, whatever needs the model
//! (ids, context) is left to the caller, unknown fields are listed.

use serde_json::Value;

use super::conversation::Conversation;
use super::generation::{Dialect, GenerationParams, MAX_TOP_LOGPROBS, small};
use super::refused;
use crate::error::FieldError;
use crate::fields::{Fields, integer_value, wrong_type};
use crate::json;

const DIALECT: Dialect = Dialect {
    read_top_logprobs,
    named_tokens: &["allowed_token_ids"],
};

/// A chat request whose fields are well-formed and in range.
#[derive(Clone, Debug, PartialEq)]
pub struct ChatCompletionRequest {
    /// Model asked for; `None` is the served one.
    pub model: Option<String>,
    /// What was said.
    pub conversation: Conversation,
    /// How to reply.
    pub generation: GenerationParams,
    /// Whether the tokens of tool calls are reported, where scores are.
    pub logprobs_tool_calls: bool,
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
            conversation: Conversation::read(&mut body, &mut ignored)?,
            logprobs_tool_calls: body.boolean("logprobs_tool_calls")?.unwrap_or(false),
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
