//! A tool call written as tags: `<function=NAME><parameter=KEY>…</parameter>…</function>`.
//!
//! It is a call once its name is known; until then a character that does not fit refutes it.

use super::call::CallStep;
use crate::output::format::ToolCallPiece;

const FUNCTION: &str = "<function=";
const PARAMETER: &str = "<parameter=";
const END_OF_PARAMETER: &str = "</parameter>";

/// Longest name of a tool, in bytes.
const MAX_NAME_BYTES: usize = 64;

/// Reads one call.
#[derive(Clone, Debug, Default)]
pub(super) struct XmlCall {
    place: Place,
    /// What came of the tag, name or value that is being read.
    text: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    BeforeFunction,
    InFunctionName,
    /// Between parameters: all that is not the begin of one is passed over.
    BetweenParameters,
    InParameterName,
    InValue {
        name: String,
    },
}

impl XmlCall {
    /// Whether the next character is a value's.
    pub(super) fn is_inside_value(&self) -> bool {
        matches!(self.place, Place::InValue { .. })
    }

    pub(super) fn push(&mut self, char: char) -> CallStep {
        match &mut self.place {
            Place::BeforeFunction if self.text.is_empty() && char.is_ascii_whitespace() => {
                CallStep::Open
            }
            Place::BeforeFunction => {
                self.text.push(char);
                if !FUNCTION.starts_with(&self.text) {
                    return CallStep::Refuted;
                }
                if self.text == FUNCTION {
                    self.go_to(Place::InFunctionName);
                }
                CallStep::Open
            }
            Place::InFunctionName => match char {
                '>' if !self.text.is_empty() => {
                    let name = self.go_to(Place::BetweenParameters);
                    CallStep::Pieces(vec![ToolCallPiece::Name(name)])
                }
                '<' | '>' | '\n' => CallStep::Refuted,
                _ if self.text.len() >= MAX_NAME_BYTES => CallStep::Refuted,
                _ => {
                    self.text.push(char);
                    CallStep::Open
                }
            },
            Place::BetweenParameters => {
                self.text.push(char);
                if self.text == PARAMETER {
                    self.go_to(Place::InParameterName);
                } else if !PARAMETER.starts_with(&self.text) {
                    self.text.clear();
                    self.text.extend((char == '<').then_some(char));
                }
                CallStep::Pieces(Vec::new())
            }
            Place::InParameterName => {
                if char == '>' {
                    let name = std::mem::take(&mut self.text);
                    self.place = Place::InValue { name };
                } else {
                    self.text.push(char);
                }
                CallStep::Pieces(Vec::new())
            }
            Place::InValue { name } => {
                self.text.push(char);
                let Some(value) = self.text.strip_suffix(END_OF_PARAMETER) else {
                    return CallStep::Pieces(Vec::new());
                };
                let value = value.strip_prefix('\n').unwrap_or(value);
                let value = value.strip_suffix('\n').unwrap_or(value);
                let piece = ToolCallPiece::Argument {
                    name: std::mem::take(name),
                    text: value.to_owned(),
                };
                self.go_to(Place::BetweenParameters);
                CallStep::Pieces(vec![piece])
            }
        }
    }

    /// Begins the next part; the text of the last.
    fn go_to(&mut self, place: Place) -> String {
        self.place = place;
        std::mem::take(&mut self.text)
    }
}
