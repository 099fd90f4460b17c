//! The error envelope.

use schemars::JsonSchema;
use serde::Serialize;

/// Body of an error reply, and of an `error` event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MessagesError {
    /// Always `error`.
    #[schemars(extend("const" = "error"))]
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// What went wrong.
    pub error: MessagesErrorObject,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MessagesErrorObject {
    /// Class of the error, such as `invalid_request_error`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// For people; names the field at fault.
    pub message: String,
}

impl MessagesError {
    /// The error of an HTTP status.
    pub fn new(status: u16, message: String) -> Self {
        let kind = match status {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            503 => "overloaded_error",
            400..=499 => "invalid_request_error",
            _ => "api_error",
        };
        Self {
            kind: "error",
            error: MessagesErrorObject { kind, message },
        }
    }
}
