//! The `input` of `/v1/decisions`: a text, or messages, tool calls and tool outputs.

use std::collections::BTreeMap;

use serde_json::Value;

use super::state::{Item, ItemKind, Role, State, compact};
use crate::error::FieldError;
use crate::fields::{Fields, wrong_type};
use crate::json::quote;
use crate::spelled::Spelled;

/// Most items of one input.
const MAX_ITEMS: usize = 4_096;

/// Reads the field `name`, which holds `input`.
pub(super) fn read_items(
    name: &str,
    input: Option<Value>,
    spelled: Option<Spelled<'_>>,
    ignored: &mut Vec<String>,
) -> Result<State, FieldError> {
    let items = match input {
        None => return Err(FieldError::missing(name)),
        Some(Value::String(text)) => return Ok(State::Text(text)),
        Some(Value::Array(items)) => items,
        Some(other) => return Err(wrong_type(name, "a string or an array of items", &other)),
    };
    super::question::check_count(name, "items", items.len(), &(1..=MAX_ITEMS))?;
    let spelled = spelled.map(Spelled::elements).unwrap_or_default();
    let mut reader = ItemReader {
        calls: BTreeMap::new(),
        ignored,
    };
    let mut read = Vec::with_capacity(items.len());
    for (index, item) in items.into_iter().enumerate() {
        let fields = Fields::new(format!("{name}[{index}]"), item)?;
        read.push(reader.read(fields, spelled.get(index).copied())?);
    }
    Ok(match <[Item; 1]>::try_from(read) {
        // One message of a user is the text that it says.
        Ok([item]) if item.kind == ItemKind::Message(Role::User) => State::Text(item.text),
        Ok([item]) => State::Items(vec![item]),
        Err(items) => State::Items(items),
    })
}

struct ItemReader<'ignored> {
    /// Names of the tools by the ids of their calls.
    calls: BTreeMap<String, String>,
    ignored: &'ignored mut Vec<String>,
}

impl ItemReader<'_> {
    fn read(&mut self, mut item: Fields, spelled: Option<Spelled<'_>>) -> Result<Item, FieldError> {
        let kinds = [
            ("message", Part::Message),
            ("function_call", Part::Call("arguments")),
            ("custom_tool_call", Part::Call("input")),
            ("function_call_output", Part::Output),
            ("custom_tool_call_output", Part::Output),
        ];
        let kind = item.choice("type", &kinds)?.unwrap_or(Part::Message);
        let read = match kind {
            Part::Message => {
                let roles = [
                    ("system", Role::System),
                    ("developer", Role::Developer),
                    ("user", Role::User),
                    ("assistant", Role::Assistant),
                ];
                let role = item.choice("role", &roles)?;
                let role = role.ok_or_else(|| FieldError::missing(item.path_of("role")))?;
                let kind = ItemKind::Message(role);
                let text = self.content(&mut item, "content", spelled)?;
                Item { kind, text }
            }
            Part::Call(field) => {
                let name = required(&mut item, "name")?;
                let text = required(&mut item, field)?;
                self.calls
                    .insert(required(&mut item, "call_id")?, name.clone());
                let kind = ItemKind::ToolCall(name);
                Item { kind, text }
            }
            Part::Output => {
                let path = item.path_of("call_id");
                let call_id = required(&mut item, "call_id")?;
                let Some(name) = self.calls.get(&call_id).cloned() else {
                    let message =
                        format!("`{path}`: no earlier call has the id {}", quote(&call_id));
                    return Err(FieldError::new(path, message));
                };
                let text = self.content(&mut item, "output", spelled)?;
                let kind = ItemKind::ToolOutput(name);
                Item { kind, text }
            }
        };
        item.harmless(&["id", "namespace", "phase", "status"]);
        self.ignored.extend(item.untaken());
        Ok(read)
    }

    fn content(
        &mut self,
        item: &mut Fields,
        name: &str,
        spelled: Option<Spelled<'_>>,
    ) -> Result<String, FieldError> {
        let path = item.path_of(name);
        let content = item.take(name).ok_or_else(|| FieldError::missing(&path))?;
        let spelled = spelled.and_then(|item| item.member(name));
        read_parts(&path, content, spelled, self.ignored)
    }
}

#[derive(Clone, Copy)]
enum Part {
    Message,
    /// With the field of its words.
    Call(&'static str),
    Output,
}

fn required(fields: &mut Fields, name: &str) -> Result<String, FieldError> {
    let text = fields.string(name)?;
    text.ok_or_else(|| FieldError::missing(fields.path_of(name)))
}

/// A text, or parts of text and JSON, one a line.
pub(super) fn read_parts(
    path: &str,
    content: Value,
    spelled: Option<Spelled<'_>>,
    ignored: &mut Vec<String>,
) -> Result<String, FieldError> {
    let parts = match content {
        Value::String(text) => return Ok(text),
        Value::Array(parts) => parts,
        other => return Err(wrong_type(path, "a string or an array of parts", &other)),
    };
    let spelled = spelled.map(Spelled::elements).unwrap_or_default();
    let mut texts = Vec::with_capacity(parts.len());
    for (index, part) in parts.into_iter().enumerate() {
        let mut part = Fields::new(format!("{path}[{index}]"), part)?;
        let kind_path = part.path_of("type");
        let kind = part.string("type")?;
        let text = match kind.as_deref() {
            Some("input_text" | "output_text" | "text") => required(&mut part, "text")?,
            Some("refusal") => required(&mut part, "refusal")?,
            Some("input_json") => {
                let path = part.path_of("data");
                let data = part
                    .take("data")
                    .ok_or_else(|| FieldError::missing(&path))?;
                if !(data.is_object() || data.is_array()) {
                    return Err(wrong_type(&path, "an object or an array of objects", &data));
                }
                let spelled = spelled.get(index).and_then(|part| part.member("data"));
                compact(&data, spelled)
            }
            Some("input_image") => {
                let what = "an image, which this model does not see,";
                return Err(FieldError::unsupported(kind_path, what));
            }
            Some(_) => return Err(FieldError::unsupported(kind_path, "this kind of part")),
            None => return Err(FieldError::missing(kind_path)),
        };
        part.harmless(&["annotations", "logprobs", "prompt_cache_breakpoint"]);
        ignored.extend(part.untaken());
        texts.push(text);
    }
    Ok(texts.join("\n"))
}
