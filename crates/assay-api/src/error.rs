//! The OpenAI error envelope, and the fault of one request field that becomes one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Body of every error reply: `{"error": {...}}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorBody {
    /// The one member.
    pub error: ErrorObject,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorObject {
    /// For people.
    pub message: String,
    /// Class of the error, such as `invalid_request_error`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Path of the field at fault, such as `messages[0].role`.
    pub param: Option<String>,
    /// Machine-readable name, such as `context_length_exceeded`.
    pub code: Option<String>,
}

/// A request that cannot be read; always the client's fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FieldError {
    /// Path of the field at fault; `None` where the body as a whole is.
    pub param: Option<String>,
    /// For people; names the field and what it may be.
    pub message: String,
}

impl FieldError {
    /// A fault of the field at `path`.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            param: Some(path.into()),
            message: message.into(),
        }
    }

    /// A fault of the body as a whole.
    pub fn body(message: impl Into<String>) -> Self {
        Self {
            param: None,
            message: message.into(),
        }
    }

    /// The field at `path`, without which nothing can be done, is not there.
    pub fn missing(path: impl Into<String>) -> Self {
        let path = path.into();
        let message = format!("`{path}`: is required");
        Self::new(path, message)
    }

    /// The server knows the field at `path` and cannot do what it asks.
    pub fn unsupported(path: impl Into<String>, what: &str) -> Self {
        let path = path.into();
        let message = format!("`{path}`: {what} is not supported yet");
        Self::new(path, message)
    }
}
