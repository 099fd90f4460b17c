//! What questions are asked about.

use serde_json::Value;

use crate::error::FieldError;
use crate::fields::wrong_type;
use crate::spelled::Spelled;

/// The content that all questions of a request refer to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// A text; a structured state is its compact JSON.
    Text(String),
    /// A conversation.
    Items(Vec<Item>),
}

/// One piece of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Whose it is.
    pub kind: ItemKind,
    /// What it says.
    pub text: String,
}

/// Whose piece of a conversation it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemKind {
    /// A message.
    Message(Role),
    /// A call of the named tool; the text is its arguments.
    ToolCall(String),
    /// What the named tool answered.
    ToolOutput(String),
}

/// Who says a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Instructions to the model.
    System,
    /// Instructions of the application.
    Developer,
    /// The user.
    User,
    /// The model.
    Assistant,
}

/// A text, or a structure as its compact JSON: what states, instructions and descriptions may be.
///
/// # Errors
/// `value` is neither text nor object nor array.
pub fn text_or_json(
    path: &str,
    value: &Value,
    spelled: Option<Spelled<'_>>,
) -> Result<String, FieldError> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Object(_) | Value::Array(_) => Ok(compact(value, spelled)),
        other => Err(wrong_type(path, "a string, an object or an array", other)),
    }
}

/// A value's compact JSON, in its sender's spelling.
pub(super) fn compact(value: &Value, spelled: Option<Spelled<'_>>) -> String {
    spelled.map_or_else(|| value.to_string(), Spelled::compact)
}
