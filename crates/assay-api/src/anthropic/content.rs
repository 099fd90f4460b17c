//! Messages as lists of blocks, made into those of a chat.

use serde_json::Value;

use crate::error::FieldError;
use crate::fields::{Fields, wrong_type};
use crate::openai::message::{MessageToolCall, required, take_messages};
use crate::openai::{ChatMessage, Content, Role};

/// Reads `system` and `messages`.
pub(super) fn read_messages(
    body: &mut Fields,
    ignored: &mut Vec<String>,
) -> Result<Vec<ChatMessage>, FieldError> {
    let mut messages = Vec::new();
    if let Some(system) = body.take("system") {
        let text = read_texts("system".to_owned(), system, ignored)?;
        messages.push(ChatMessage::new(Role::System, text));
    }
    for (index, value) in take_messages(body)?.into_iter().enumerate() {
        let mut message = Fields::new(format!("messages[{index}]"), value)?;
        let roles = [("user", Role::User), ("assistant", Role::Assistant)];
        let role = message.choice("role", &roles)?;
        let Some(role) = role else {
            return Err(is_required(message.path_of("role")));
        };
        let path = message.path_of("content");
        let Some(value) = message.take("content") else {
            return Err(is_required(path));
        };
        let blocks = blocks(path, value)?;
        match role {
            Role::Assistant => messages.push(read_assistant(blocks, ignored)?),
            _ => read_user(blocks, &mut messages, ignored)?,
        }
        ignored.extend(message.untaken());
    }
    let is_prefill = messages
        .last()
        .is_some_and(|last| last.role == Role::Assistant);
    if is_prefill {
        let what = "going on with a last message of the assistant";
        return Err(FieldError::unsupported("messages", what));
    }
    Ok(messages)
}

/// The blocks of a content; a text is one block.
fn blocks(path: String, value: Value) -> Result<Vec<Fields>, FieldError> {
    match value {
        Value::String(text) => {
            let block = serde_json::json!({"type": "text", "text": text});
            Ok(vec![Fields::new(path, block)?])
        }
        Value::Array(blocks) => {
            let numbered = blocks.into_iter().enumerate();
            let read =
                numbered.map(|(index, block)| Fields::new(format!("{path}[{index}]"), block));
            read.collect()
        }
        other => Err(wrong_type(&path, "a string or an array of blocks", &other)),
    }
}

fn read_assistant(
    blocks: Vec<Fields>,
    ignored: &mut Vec<String>,
) -> Result<ChatMessage, FieldError> {
    let mut texts = Vec::new();
    let mut thoughts = Vec::new();
    let mut tool_calls = Vec::new();
    for mut block in blocks {
        match kind(&mut block)?.as_str() {
            "text" => texts.push(required(&mut block, "text")?),
            "thinking" => {
                thoughts.push(required(&mut block, "thinking")?);
                block.harmless(&["signature"]);
            }
            "tool_use" => {
                let path = block.path_of("input");
                tool_calls.push(MessageToolCall {
                    id: required(&mut block, "id")?,
                    name: required(&mut block, "name")?,
                    arguments: match block.take("input") {
                        Some(input @ Value::Object(_)) => input.to_string(),
                        Some(other) => return Err(wrong_type(&path, "an object", &other)),
                        None => return Err(is_required(path)),
                    },
                });
            }
            kind => {
                let what = format!("a block of type {kind:?}");
                return Err(FieldError::unsupported(block.path_of("type"), &what));
            }
        }
        end_block(block, ignored);
    }
    Ok(ChatMessage {
        tool_calls,
        reasoning_content: (!thoughts.is_empty()).then(|| thoughts.concat()),
        ..ChatMessage::new(Role::Assistant, content(texts))
    })
}

/// A person's texts and the tools' answers, each kind in a message of its own, in their order.
fn read_user(
    blocks: Vec<Fields>,
    messages: &mut Vec<ChatMessage>,
    ignored: &mut Vec<String>,
) -> Result<(), FieldError> {
    let mut texts = Vec::new();
    let is_empty = blocks.is_empty();
    for mut block in blocks {
        match kind(&mut block)?.as_str() {
            "text" => texts.push(required(&mut block, "text")?),
            "tool_result" => {
                if !texts.is_empty() {
                    let texts = std::mem::take(&mut texts);
                    messages.push(ChatMessage::new(Role::User, content(texts)));
                }
                let tool_call_id = required(&mut block, "tool_use_id")?;
                let _ = block.boolean("is_error")?;
                let answer = read_result(&mut block, ignored)?;
                messages.push(ChatMessage {
                    tool_call_id: Some(tool_call_id),
                    ..ChatMessage::new(Role::Tool, answer)
                });
            }
            kind => {
                let what = format!("a block of type {kind:?}");
                return Err(FieldError::unsupported(block.path_of("type"), &what));
            }
        }
        end_block(block, ignored);
    }
    if !texts.is_empty() || is_empty {
        messages.push(ChatMessage::new(Role::User, content(texts)));
    }
    Ok(())
}

fn read_result(result: &mut Fields, ignored: &mut Vec<String>) -> Result<Content, FieldError> {
    let path = result.path_of("content");
    let Some(value) = result.take("content") else {
        return Ok(Content::Text(String::new()));
    };
    read_texts(path, value, ignored)
}

/// Reads content that is text alone.
fn read_texts(
    path: String,
    value: Value,
    ignored: &mut Vec<String>,
) -> Result<Content, FieldError> {
    let mut texts = Vec::new();
    for mut block in blocks(path, value)? {
        let kind = kind(&mut block)?;
        if kind != "text" {
            let what = format!("a block of type {kind:?}");
            return Err(FieldError::unsupported(block.path_of("type"), &what));
        }
        texts.push(required(&mut block, "text")?);
        end_block(block, ignored);
    }
    Ok(content(texts))
}

fn content(mut texts: Vec<String>) -> Content {
    match texts.len() {
        0 => Content::Text(String::new()),
        1 => Content::Text(texts.remove(0)),
        _ => Content::Parts(texts),
    }
}

/// What is left of a block: marks for a cache ask for nothing that is not done anyway.
fn end_block(mut block: Fields, ignored: &mut Vec<String>) {
    block.harmless(&["cache_control", "citations"]);
    ignored.extend(block.untaken());
}

fn kind(block: &mut Fields) -> Result<String, FieldError> {
    required(block, "type")
}

fn is_required(path: String) -> FieldError {
    let message = format!("`{path}`: is required");
    FieldError::new(path, message)
}
