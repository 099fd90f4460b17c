//! One message of a conversation, reduced to what a chat template may see: role and text.

use serde_json::Value;

use crate::error::FieldError;
use crate::fields::{Fields, wrong_type};

/// Most messages in one conversation.
pub const MAX_MESSAGES: usize = 4_096;

/// Author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Instructions.
    System,
    /// Instructions, in the newer word.
    Developer,
    /// The person.
    User,
    /// The model.
    Assistant,
    /// A tool's answer.
    Tool,
}

const ROLES: [(&str, Role); 5] = [
    ("system", Role::System),
    ("developer", Role::Developer),
    ("user", Role::User),
    ("assistant", Role::Assistant),
    ("tool", Role::Tool),
];

/// Text of a message, whole or in parts; how parts are joined is the chat template's business.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// One text.
    Text(String),
    /// Several.
    Parts(Vec<String>),
}

impl Content {
    /// Bytes of all its text.
    pub fn num_bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Parts(parts) => parts.iter().map(String::len).sum(),
        }
    }
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatMessage {
    /// Author.
    pub role: Role,
    /// Its text; null and absent are empty.
    pub content: Content,
    /// The author's name.
    pub name: Option<String>,
    /// The call that a tool message answers.
    pub tool_call_id: Option<String>,
    /// The calls that the model made; only its own messages have some.
    pub tool_calls: Vec<MessageToolCall>,
    /// What the model thought; only its own messages have it.
    pub reasoning_content: Option<String>,
}

/// A call that an earlier reply made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageToolCall {
    /// Its name in the conversation.
    pub id: String,
    /// The tool that was called.
    pub name: String,
    /// Its arguments, as JSON text.
    pub arguments: String,
}

impl ChatMessage {
    /// A message that is all words.
    pub fn new(role: Role, content: Content) -> Self {
        Self {
            role,
            content,
            name: None,
            tool_call_id: None,
            tool_calls: Vec::new(),
            reasoning_content: None,
        }
    }

    /// Bytes of all that a template may print of it.
    pub fn num_bytes(&self) -> usize {
        let calls = self.tool_calls.iter();
        let calls: usize = calls
            .map(|call| call.name.len() + call.arguments.len())
            .sum();
        let reasoning = self.reasoning_content.as_ref().map_or(0, String::len);
        self.content.num_bytes() + calls + reasoning
    }
}

/// Takes `messages`, of which no conversation has none or more than [`MAX_MESSAGES`].
pub(crate) fn take_messages(body: &mut Fields) -> Result<Vec<Value>, FieldError> {
    let Some(values) = body.array("messages")? else {
        return Err(FieldError::new("messages", "`messages`: is required"));
    };
    if values.is_empty() || values.len() > MAX_MESSAGES {
        let message = format!(
            "`messages`: must hold 1 to {MAX_MESSAGES} messages, not {}",
            values.len()
        );
        return Err(FieldError::new("messages", message));
    }
    Ok(values)
}

/// Reads `messages`; appends paths of unknown fields to `ignored`.
pub(super) fn read_messages(
    body: &mut Fields,
    ignored: &mut Vec<String>,
) -> Result<Vec<ChatMessage>, FieldError> {
    let numbered = take_messages(body)?.into_iter().enumerate();
    numbered
        .map(|(index, value)| read_message(format!("messages[{index}]"), value, ignored))
        .collect()
}

fn read_message(
    path: String,
    value: Value,
    ignored: &mut Vec<String>,
) -> Result<ChatMessage, FieldError> {
    let mut fields = Fields::new(path, value)?;
    let Some(role) = fields.choice("role", &ROLES)? else {
        let path = fields.path_of("role");
        let message = format!("`{path}`: is required");
        return Err(FieldError::new(path, message));
    };
    let content = read_content(&mut fields, ignored)?;
    let name = fields.string("name")?;
    let tool_call_id = fields.string("tool_call_id")?;
    let tool_calls = read_tool_calls(&mut fields)?;
    let reasoning = fields.string("reasoning")?;
    let reasoning_content = fields.string("reasoning_content")?.or(reasoning);
    if role != Role::Assistant {
        let is_empty = [
            ("tool_calls", tool_calls.is_empty()),
            ("reasoning_content", reasoning_content.is_none()),
        ];
        if let Some((field, _)) = is_empty.into_iter().find(|(_, is_empty)| !is_empty) {
            let path = fields.path_of(field);
            let message = format!("`{path}`: only a message of the assistant may have this");
            return Err(FieldError::new(path, message));
        }
    }
    // SDKs send whole replies back, so empty forms of these are everyday.
    if !fields.array("annotations")?.unwrap_or_default().is_empty() {
        let what = "a conversation with annotations";
        return Err(FieldError::unsupported(fields.path_of("annotations"), what));
    }
    for (field, what) in [
        ("function_call", "a conversation with function calls"),
        ("audio", "audio"),
        ("refusal", "a conversation with refusals"),
    ] {
        fields.refuse(field, what)?;
    }
    ignored.extend(fields.untaken());
    Ok(ChatMessage {
        role,
        content,
        name,
        tool_call_id,
        tool_calls,
        reasoning_content,
    })
}

fn read_tool_calls(message: &mut Fields) -> Result<Vec<MessageToolCall>, FieldError> {
    let path = message.path_of("tool_calls");
    let calls = message.array("tool_calls")?.unwrap_or_default();
    let numbered = calls.into_iter().enumerate();
    let read = numbered.map(|(index, call)| {
        let mut call = Fields::new(format!("{path}[{index}]"), call)?;
        let kind_path = call.path_of("type");
        if !matches!(call.string("type")?.as_deref(), None | Some("function")) {
            return Err(FieldError::unsupported(
                kind_path,
                "any type but \"function\"",
            ));
        }
        let id = required(&mut call, "id")?;
        let function_path = call.path_of("function");
        let Some(mut function) = call.object("function")? else {
            let message = format!("`{function_path}`: is required");
            return Err(FieldError::new(function_path, message));
        };
        Ok(MessageToolCall {
            id,
            name: required(&mut function, "name")?,
            arguments: required(&mut function, "arguments")?,
        })
    });
    read.collect()
}

/// Takes a string that must be there.
pub(crate) fn required(fields: &mut Fields, name: &str) -> Result<String, FieldError> {
    let path = fields.path_of(name);
    fields.string(name)?.ok_or_else(|| {
        let message = format!("`{path}`: is required");
        FieldError::new(path, message)
    })
}

fn read_content(fields: &mut Fields, ignored: &mut Vec<String>) -> Result<Content, FieldError> {
    let path = fields.path_of("content");
    match fields.take("content") {
        None => Ok(Content::Text(String::new())),
        Some(Value::String(text)) => Ok(Content::Text(text)),
        Some(Value::Array(parts)) => {
            let numbered = parts.into_iter().enumerate();
            let read =
                numbered.map(|(index, part)| read_part(format!("{path}[{index}]"), part, ignored));
            Ok(Content::Parts(read.collect::<Result<_, _>>()?))
        }
        Some(other) => Err(wrong_type(
            &path,
            "a string, an array of parts or null",
            &other,
        )),
    }
}

fn read_part(path: String, value: Value, ignored: &mut Vec<String>) -> Result<String, FieldError> {
    let mut fields = Fields::new(path, value)?;
    let kind_path = fields.path_of("type");
    let text_path = fields.path_of("text");
    match fields.string("type")?.as_deref() {
        Some("text") => {}
        Some(kind @ ("image_url" | "input_audio" | "file" | "video_url" | "refusal")) => {
            return Err(FieldError::unsupported(
                kind_path,
                &format!("a part of type {kind:?}"),
            ));
        }
        _ => {
            let message = format!("`{kind_path}`: must be \"text\"");
            return Err(FieldError::new(kind_path, message));
        }
    }
    let text = fields.string("text")?;
    ignored.extend(fields.untaken());
    text.ok_or_else(|| {
        let message = format!("`{text_path}`: is required");
        FieldError::new(text_path, message)
    })
}
