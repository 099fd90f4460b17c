//! What a reply said of its tool calls, piece by piece, to calls with JSON arguments.

use std::collections::BTreeMap;
use std::sync::Arc;

use assay_api::openai::{FunctionCall, FunctionDelta, ToolCall, ToolCallDelta, Tools};
use assay_engine::ToolCallPiece;
use serde_json::{Value, json};

/// Schemas of the tools' arguments, by name.
pub(crate) type ArgumentSchemas = Arc<BTreeMap<String, Value>>;

/// The schemas of a request's tools.
pub(crate) fn argument_schemas(tools: &Tools) -> ArgumentSchemas {
    let schemas = tools.tools.iter().filter_map(|tool| {
        let schema = tool.parameters.clone()?;
        Some((tool.name.clone(), schema))
    });
    Arc::new(schemas.collect())
}

/// Reads the calls of one choice.
#[derive(Clone, Debug)]
pub(crate) struct ToolCallReader {
    /// Begins the calls' names in the conversation.
    id_prefix: String,
    schemas: ArgumentSchemas,
    num_calls: u32,
    /// The call that is written, where it is not written as JSON.
    assembled: Option<Assembled>,
}

/// A call whose arguments are made into JSON one by one.
#[derive(Clone, Debug)]
struct Assembled {
    tool: String,
    num_arguments: usize,
}

impl ToolCallReader {
    pub(crate) fn new(id_prefix: String, schemas: ArgumentSchemas) -> Self {
        Self {
            id_prefix,
            schemas,
            num_calls: 0,
            assembled: None,
        }
    }

    /// Calls that have begun.
    pub(crate) fn num_calls(&self) -> u32 {
        self.num_calls
    }

    /// What `pieces` add, at most one delta for each call.
    pub(crate) fn push<'a>(
        &mut self,
        pieces: impl IntoIterator<Item = &'a ToolCallPiece>,
    ) -> Vec<ToolCallDelta> {
        let mut deltas = Vec::new();
        for piece in pieces {
            match piece {
                ToolCallPiece::Name(name) => {
                    deltas.extend(self.finish());
                    deltas.push(self.begin(name));
                }
                ToolCallPiece::Arguments(text) => {
                    self.assembled = None;
                    self.append(text, &mut deltas);
                }
                ToolCallPiece::Argument { name, text } => {
                    let member = self.member(name, text);
                    self.append(&member, &mut deltas);
                }
            }
        }
        deltas
    }

    /// What the last call still lacks, once nothing more comes.
    pub(crate) fn finish(&mut self) -> Option<ToolCallDelta> {
        let assembled = self.assembled.take()?;
        let end = if assembled.num_arguments == 0 {
            "{}"
        } else {
            "}"
        };
        Some(self.delta(end.to_owned()))
    }

    fn begin(&mut self, name: &str) -> ToolCallDelta {
        self.assembled = Some(Assembled {
            tool: name.to_owned(),
            num_arguments: 0,
        });
        self.num_calls += 1;
        let mut delta = self.delta(String::new());
        delta.id = Some(format!("{}{}", self.id_prefix, delta.index));
        delta.kind = Some("function".to_owned());
        delta.function.name = Some(name.to_owned());
        delta
    }

    fn append(&self, text: &str, deltas: &mut Vec<ToolCallDelta>) {
        let delta = self.delta(text.to_owned());
        match deltas.last_mut() {
            Some(last) if last.index == delta.index => last.function.arguments.push_str(text),
            _ => deltas.push(delta),
        }
    }

    /// A piece of the latest call.
    fn delta(&self, arguments: String) -> ToolCallDelta {
        ToolCallDelta {
            index: self.num_calls.saturating_sub(1),
            id: None,
            kind: None,
            function: FunctionDelta {
                name: None,
                arguments,
            },
        }
    }

    /// An argument as the next member of the call's object.
    fn member(&mut self, name: &str, text: &str) -> String {
        let Some(assembled) = &mut self.assembled else {
            return String::new();
        };
        let opening = if assembled.num_arguments == 0 {
            "{"
        } else {
            ", "
        };
        assembled.num_arguments += 1;
        let schema = self.schemas.get(&assembled.tool);
        let schema = schema.and_then(|schema| schema.get("properties")?.get(name));
        format!("{opening}{}: {}", json!(name), argument_value(text, schema))
    }
}

/// The JSON that a written argument means: text where its schema wants text, else what it spells, if it is JSON.
fn argument_value(text: &str, schema: Option<&Value>) -> Value {
    if schema.is_some_and(is_text) {
        return json!(text);
    }
    // Depth is bounded by the parser.
    serde_json::from_str(text).unwrap_or_else(|_| json!(text))
}

/// Whether a schema allows strings and nothing else.
pub(crate) fn is_text(schema: &Value) -> bool {
    let only_strings = |values: &Vec<Value>| values.iter().all(Value::is_string);
    match (schema.get("type"), schema.get("enum")) {
        (Some(kind), _) => kind == "string",
        (None, Some(Value::Array(values))) => only_strings(values),
        _ => schema.get("const").is_some_and(Value::is_string),
    }
}

/// Adds a piece to the calls of an unstreamed reply.
pub(crate) fn apply(calls: &mut Vec<ToolCall>, delta: ToolCallDelta) {
    match delta.function.name {
        Some(name) => calls.push(ToolCall {
            id: delta.id.unwrap_or_default(),
            kind: delta.kind.unwrap_or_default(),
            function: FunctionCall {
                name,
                arguments: delta.function.arguments,
            },
        }),
        None => {
            if let Some(last) = calls.last_mut() {
                last.function.arguments.push_str(&delta.function.arguments);
            }
        }
    }
}
