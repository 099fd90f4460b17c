//! A tool call written as one JSON object: `{"name": …, "arguments": {…}}`, members in any order.
//!
//! It is a call once its name is known and its arguments have begun, or once it closed without any. Until then a
//! character that does not fit refutes it. From then on nothing does: what the model writes as arguments is
//! passed on as it stands.

use super::call::CallStep;
use crate::output::format::ToolCallPiece;

/// Longest name of a tool and longest key of the outer object, in bytes.
const MAX_NAME_BYTES: usize = 64;

/// Reads one call.
#[derive(Clone, Debug)]
pub(super) struct JsonCall {
    /// Key of the arguments; `arguments` is taken as well.
    arguments_key: &'static str,
    /// Names that a call may have; `None` allows all.
    names: Option<Vec<String>>,
    place: Place,
    /// The key, or the name, that is being read.
    word: String,
    /// Until it is announced.
    name: Option<String>,
    /// What came of the arguments and is not announced; `None` before they begin.
    arguments: Option<String>,
    is_announced: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    BeforeObject,
    /// A closing brace may stand in place of the first key.
    BeforeKey {
        is_first: bool,
    },
    InKey,
    BeforeColon,
    BeforeValue,
    InName,
    InValue {
        value: Value,
        is_arguments: bool,
    },
    AfterValue,
    Closed,
    /// No longer what a call should be; read to its end all the same.
    Broken,
}

/// A value while it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    /// Ends with its quote.
    String { is_escaped: bool },
    /// Ends at depth 0; inside a string of it, whether the next character is escaped.
    Nested { depth: usize, string: Option<bool> },
    /// Ends before what cannot be part of it.
    Literal,
}

impl Value {
    fn begin(char: char) -> Option<Self> {
        match char {
            '"' => Some(Self::String { is_escaped: false }),
            '{' | '[' => Some(Self::Nested {
                depth: 1,
                string: None,
            }),
            '-' | '0'..='9' | 't' | 'f' | 'n' => Some(Self::Literal),
            _ => None,
        }
    }

    /// Reads a character; the value that goes on, or `None` if this was its last.
    fn push(self, char: char) -> Option<Self> {
        let escapes = |is_escaped: bool| !is_escaped && char == '\\';
        let ends_string = |is_escaped: bool| !is_escaped && char == '"';
        match self {
            Self::String { is_escaped } if ends_string(is_escaped) => None,
            Self::String { is_escaped } => Some(Self::String {
                is_escaped: escapes(is_escaped),
            }),
            Self::Nested {
                depth,
                string: Some(is_escaped),
            } => Some(Self::Nested {
                depth,
                string: (!ends_string(is_escaped)).then(|| escapes(is_escaped)),
            }),
            Self::Nested { depth, .. } => {
                let (depth, string) = match char {
                    '"' => (depth, Some(false)),
                    '{' | '[' => (depth + 1, None),
                    '}' | ']' => (depth - 1, None),
                    _ => (depth, None),
                };
                (depth > 0).then_some(Self::Nested { depth, string })
            }
            Self::Literal => Some(self),
        }
    }

    fn is_string(self) -> bool {
        matches!(
            self,
            Self::String { .. }
                | Self::Nested {
                    string: Some(_),
                    ..
                }
        )
    }
}

impl JsonCall {
    pub(super) fn new(arguments_key: &'static str, names: Option<Vec<String>>) -> Self {
        Self {
            arguments_key,
            names,
            place: Place::BeforeObject,
            word: String::new(),
            name: None,
            arguments: None,
            is_announced: false,
        }
    }

    /// Whether the object is complete.
    pub(super) fn is_closed(&self) -> bool {
        self.place == Place::Closed
    }

    /// Whether the next character stands in a string.
    pub(super) fn is_inside_string(&self) -> bool {
        match self.place {
            Place::InKey | Place::InName => true,
            Place::InValue { value, .. } => value.is_string(),
            _ => false,
        }
    }

    pub(super) fn push(&mut self, char: char) -> CallStep {
        let mut pieces = Vec::new();
        let fits = self.read(char, &mut pieces);
        match (fits, self.is_announced) {
            (false, false) => return CallStep::Refuted,
            (false, true) => self.place = Place::Broken,
            (true, false) => return CallStep::Open,
            (true, true) => {}
        }
        CallStep::Pieces(pieces)
    }

    /// Reads a character; whether it fits.
    fn read(&mut self, char: char, pieces: &mut Vec<ToolCallPiece>) -> bool {
        let is_blank = matches!(char, ' ' | '\n' | '\r' | '\t');
        match self.place {
            Place::InKey | Place::InName => return self.read_word(char, pieces),
            Place::InValue {
                value,
                is_arguments,
            } => return self.read_value(value, is_arguments, char, pieces),
            Place::Broken => {}
            _ if is_blank => {}
            Place::BeforeObject if char == '{' => self.place = Place::BeforeKey { is_first: true },
            Place::BeforeKey { .. } if char == '"' => self.place = Place::InKey,
            Place::BeforeKey { is_first: true } | Place::AfterValue if char == '}' => {
                self.place = Place::Closed;
                if self.arguments.is_none() {
                    self.arguments = Some("{}".to_owned());
                }
                self.announce(pieces);
                return self.is_announced;
            }
            Place::BeforeColon if char == ':' => self.place = Place::BeforeValue,
            Place::BeforeValue => return self.begin_value(char, pieces),
            Place::AfterValue if char == ',' => self.place = Place::BeforeKey { is_first: false },
            _ => return false,
        }
        true
    }

    /// Reads on in a key or in the name; neither has escapes.
    fn read_word(&mut self, char: char, pieces: &mut Vec<ToolCallPiece>) -> bool {
        match char {
            '"' if self.place == Place::InKey => self.place = Place::BeforeColon,
            '"' => {
                let name = std::mem::take(&mut self.word);
                let names = self.names.as_ref();
                if name.is_empty() || names.is_some_and(|names| !names.contains(&name)) {
                    return false;
                }
                self.name = Some(name);
                self.place = Place::AfterValue;
                self.announce(pieces);
            }
            '\\' => return false,
            _ if self.word.len() >= MAX_NAME_BYTES => return false,
            _ => self.word.push(char),
        }
        true
    }

    fn begin_value(&mut self, char: char, pieces: &mut Vec<ToolCallPiece>) -> bool {
        let key = std::mem::take(&mut self.word);
        let Some(value) = Value::begin(char) else {
            return false;
        };
        let has_name = self.name.is_some() || self.is_announced;
        let is_arguments = key == self.arguments_key || key == "arguments";
        match char {
            '"' if key == "name" && !has_name => {
                self.place = Place::InName;
                return true;
            }
            '{' if is_arguments && self.arguments.is_none() => {
                self.arguments = Some(char.to_string());
            }
            _ if is_arguments || key == "name" => return false,
            _ => {}
        }
        self.place = Place::InValue {
            value,
            is_arguments,
        };
        self.announce(pieces);
        true
    }

    fn read_value(
        &mut self,
        value: Value,
        is_arguments: bool,
        char: char,
        pieces: &mut Vec<ToolCallPiece>,
    ) -> bool {
        if value == Value::Literal && matches!(char, ',' | '}' | ' ' | '\n' | '\r' | '\t') {
            self.place = Place::AfterValue;
            return self.read(char, pieces);
        }
        self.place = match value.push(char) {
            Some(value) => Place::InValue {
                value,
                is_arguments,
            },
            None => Place::AfterValue,
        };
        if !is_arguments {
            return true;
        }
        match &mut self.arguments {
            Some(early) if !self.is_announced => early.push(char),
            _ => pieces.push(ToolCallPiece::Arguments(char.to_string())),
        }
        true
    }

    /// Tells of the call as soon as its name is known and its arguments have begun.
    fn announce(&mut self, pieces: &mut Vec<ToolCallPiece>) {
        if self.is_announced || self.name.is_none() {
            return;
        }
        let Some(arguments) = &mut self.arguments else {
            return;
        };
        let arguments = std::mem::take(arguments);
        pieces.extend(self.name.take().map(ToolCallPiece::Name));
        pieces.push(ToolCallPiece::Arguments(arguments));
        self.is_announced = true;
    }
}
