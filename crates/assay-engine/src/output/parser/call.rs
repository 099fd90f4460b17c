//! One call of a tool in the making, whichever way it is written.

use super::json_call::JsonCall;
use super::xml_call::XmlCall;
use crate::output::format::ToolCallPiece;

/// Reads one call.
#[derive(Clone, Debug)]
pub(super) enum Call {
    Json(JsonCall),
    Xml(XmlCall),
}

/// What a character told of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CallStep {
    /// It may still be none.
    Open,
    /// It is one; pieces that are complete.
    Pieces(Vec<ToolCallPiece>),
    /// It is none. Only before any piece.
    Refuted,
}

impl Call {
    pub(super) fn push(&mut self, char: char) -> CallStep {
        match self {
            Self::Json(call) => call.push(char),
            Self::Xml(call) => call.push(char),
        }
    }

    /// Whether a closing tag here would be text of a value.
    pub(super) fn is_inside_value(&self) -> bool {
        match self {
            Self::Json(call) => call.is_inside_string(),
            Self::Xml(call) => call.is_inside_value(),
        }
    }
}
