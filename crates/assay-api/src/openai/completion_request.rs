//! `POST /v1/completions`, read strictly, as a chat request is.

use serde_json::Value;

use super::generation::{Dialect, GenerationParams, MAX_TOP_LOGPROBS, small, token_ids};
use super::refused;
use crate::error::FieldError;
use crate::fields::{Fields, wrong_type};
use crate::json;

/// Most prompts in one request.
pub const MAX_PROMPTS: usize = 1_024;
/// Most replies in one request, over all prompts.
pub const MAX_REPLIES: usize = 4_096;

const DIALECT: Dialect = Dialect {
    read_top_logprobs,
    named_tokens: &["allowed_token_ids", "logprob_token_ids"],
};

/// A completion request whose fields are well-formed and in range.
#[derive(Clone, Debug, PartialEq)]
pub struct CompletionRequest {
    /// Model asked for; `None` is the served one.
    pub model: Option<String>,
    /// 1 to [`MAX_PROMPTS`] prompts; with `n` at most [`MAX_REPLIES`] replies.
    pub prompts: Vec<Prompt>,
    /// Whether text prompts get the model's beginning token.
    pub add_special_tokens: bool,
    /// Whether replies begin with their prompt.
    pub echo: bool,
    /// Whether scores come as entries besides; without `logprobs` of no effect.
    pub logprobs_content: bool,
    /// How to reply.
    pub generation: GenerationParams,
    /// Paths of fields that the server does not know.
    pub ignored: Vec<String>,
}

/// One prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// Text, to be tokenised.
    Text(String),
    /// Token ids, taken as they are; never empty, not yet checked against a vocabulary.
    TokenIds(Vec<u32>),
}

impl CompletionRequest {
    /// Reads a request body.
    ///
    /// # Errors
    /// Not JSON, or the first field that is missing, of a wrong type, out of range or not supported.
    pub fn from_json(body: &[u8]) -> Result<Self, FieldError> {
        let mut body = Fields::new("", json::parse(body)?)?;
        let mut ignored = Vec::new();
        let request = Self {
            model: body.string("model")?,
            prompts: read_prompts(&mut body)?,
            add_special_tokens: body.boolean("add_special_tokens")?.unwrap_or(true),
            echo: body.boolean("echo")?.unwrap_or(false),
            logprobs_content: body.boolean("logprobs_content")?.unwrap_or(false),
            generation: GenerationParams::read(&mut body, &DIALECT, &mut ignored)?,
            ignored: Vec::new(),
        };
        request.check_num_replies(&mut body)?;
        refused::check_completion(&mut body)?;
        ignored.splice(0..0, body.untaken());
        Ok(Self { ignored, ..request })
    }

    fn check_num_replies(&self, body: &mut Fields) -> Result<(), FieldError> {
        let n = self.generation.n;
        let best_of = body.integer("best_of", 1..=super::generation::MAX_CHOICES)?;
        if best_of.is_some_and(|best_of| best_of != i64::from(n)) {
            let message = format!(
                "`best_of`: must equal `n`, which is {n}: replies are not ranked against each other"
            );
            return Err(FieldError::new("best_of", message));
        }
        let num_prompts = self.prompts.len();
        let fits = usize::try_from(n).is_ok_and(|n| n * num_prompts <= MAX_REPLIES);
        if !fits {
            let message = format!(
                "`n`: {n} replies to each of {num_prompts} prompts are more than {MAX_REPLIES} in one request"
            );
            return Err(FieldError::new("n", message));
        }
        Ok(())
    }
}

/// `logprobs` alone both switches and counts here.
fn read_top_logprobs(body: &mut Fields) -> Result<Option<u32>, FieldError> {
    let asked = body.integer("logprobs", 0..=MAX_TOP_LOGPROBS)?;
    Ok(asked.map(small))
}

fn read_prompts(body: &mut Fields) -> Result<Vec<Prompt>, FieldError> {
    const EXPECTED: &str = "a string, an array of strings, of token ids or of arrays of token ids";
    let values = match body.take("prompt") {
        None => return Err(FieldError::new("prompt", "`prompt`: is required")),
        Some(Value::String(text)) => return Ok(vec![Prompt::Text(text)]),
        Some(Value::Array(values)) => values,
        Some(other) => return Err(wrong_type("prompt", EXPECTED, &other)),
    };
    match values.first() {
        None => Err(FieldError::new("prompt", "`prompt`: must not be empty")),
        Some(Value::Number(_)) => Ok(vec![Prompt::TokenIds(token_ids("prompt", &values)?)]),
        Some(Value::String(_) | Value::Array(_)) if values.len() > MAX_PROMPTS => {
            let message = format!(
                "`prompt`: must hold at most {MAX_PROMPTS} prompts, not {}",
                values.len()
            );
            Err(FieldError::new("prompt", message))
        }
        Some(Value::String(_) | Value::Array(_)) => {
            let numbered = values.into_iter().enumerate();
            numbered
                .map(|(index, value)| read_prompt(format!("prompt[{index}]"), value))
                .collect()
        }
        Some(other) => Err(wrong_type("prompt[0]", EXPECTED, other)),
    }
}

pub(crate) fn read_prompt(path: String, value: Value) -> Result<Prompt, FieldError> {
    match value {
        Value::String(text) => Ok(Prompt::Text(text)),
        Value::Array(ids) if ids.is_empty() => {
            let message = format!("`{path}`: must not be empty");
            Err(FieldError::new(path, message))
        }
        Value::Array(ids) => Ok(Prompt::TokenIds(token_ids(&path, &ids)?)),
        other => Err(wrong_type(
            &path,
            "a string or an array of token ids",
            &other,
        )),
    }
}
