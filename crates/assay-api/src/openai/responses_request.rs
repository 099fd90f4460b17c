//! `POST /v1/responses`: its request, read strictly and stateless.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::conversation::Conversation;
use super::generation::{Dialect, GenerationParams, MAX_TOP_LOGPROBS, small};
use super::message::{ChatMessage, Content, MAX_MESSAGES, MessageToolCall, Role, required};
use super::reasoning::{ReasoningParams, read_effort};
use super::tools::{Tool, read_tools_of};
use crate::error::FieldError;
use crate::fields::{Fields, wrong_type};
use crate::json as json_text;
use crate::record;

/// What `include` may hold: the one thing that is not there by itself.
const INCLUDED_LOGPROBS: &str = "message.output_text.logprobs";

/// Accepted with any value: they change neither tokens nor scores.
const HARMLESS: &[&str] = &[
    "client_metadata",
    "metadata",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "service_tier",
    "store",
    "stream_options",
    "user",
];

/// Fields of chat requests that mean the same here.
const SHARED: &[&str] = &[
    "allowed_token_ids",
    "cache_salt",
    "frequency_penalty",
    "logit_bias",
    "logprobs_mode",
    "min_p",
    "presence_penalty",
    "repetition_penalty",
    "seed",
    "stop",
    "stream",
    "structured_outputs",
    "temperature",
    "top_k",
    "top_p",
];

const DIALECT: Dialect = Dialect {
    read_top_logprobs,
    named_tokens: &["allowed_token_ids"],
};

/// A request whose fields are well-formed and in range.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponsesRequest {
    /// Model asked for; `None` is the served one.
    pub model: Option<String>,
    /// The input, after the instructions.
    pub conversation: Conversation,
    /// How to reply.
    pub generation: GenerationParams,
    /// What the reply repeats of the request.
    pub echoed: EchoedFields,
    /// Paths of fields that the server does not know.
    pub ignored: Vec<String>,
}

/// What a reply repeats of its request.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EchoedFields {
    /// The instructions.
    pub instructions: Option<String>,
    /// The limit of the reply.
    pub max_output_tokens: Option<i64>,
    /// As given.
    pub metadata: Value,
    /// As given.
    pub text: Value,
    /// As given.
    pub reasoning: Value,
    /// As given.
    pub tools: Value,
    /// As given.
    pub tool_choice: Value,
    /// As given.
    pub parallel_tool_calls: bool,
}

impl ResponsesRequest {
    /// Reads a request body.
    ///
    /// # Errors
    /// Not JSON, or the first field that is missing, of a wrong type, out of range or not supported.
    pub fn from_json(body: &[u8]) -> Result<Self, FieldError> {
        let mut body = Fields::new("", json_text::parse(body)?)?;
        let mut ignored = Vec::new();
        let model = body.string("model")?;
        let metadata = body.take("metadata").unwrap_or_else(|| json!({}));
        let instructions = body.string("instructions")?;
        let messages = read_input(&mut body, instructions.as_deref(), &mut ignored)?;
        let max_output_tokens = body.integer("max_output_tokens", 1..=i64::MAX)?;
        let (text, format) = read_text(&mut body)?;
        let mut generation = read_generation(&mut body, format, &mut ignored)?;
        generation.max_tokens = max_output_tokens.map(|limit| ("max_output_tokens", limit));
        let reasoning = body.take("reasoning");
        let [tools, tool_choice] = [("tools", json!([])), ("tool_choice", json!("auto"))]
            .map(|(name, default)| body.get(name).cloned().unwrap_or(default));
        let own_tools = read_tools_of(&mut body, read_tool)?;
        check_refused(&mut body)?;
        ignored.splice(0..0, body.untaken());
        Ok(Self {
            model,
            conversation: Conversation {
                messages,
                chat_template_kwargs: Map::new(),
                reasoning: read_reasoning(reasoning.clone(), &mut ignored)?,
                tools: own_tools.clone(),
            },
            generation,
            echoed: EchoedFields {
                instructions,
                max_output_tokens,
                metadata,
                text,
                reasoning: reasoning.unwrap_or(Value::Null),
                tools,
                tool_choice,
                parallel_tool_calls: !own_tools.at_most_one_call,
            },
            ignored,
        })
    }
}

/// The fields that chat requests have as well, and the form of the reply, read as theirs.
fn read_generation(
    body: &mut Fields,
    format: Option<Value>,
    ignored: &mut Vec<String>,
) -> Result<GenerationParams, FieldError> {
    let includes_logprobs = read_include(body)?;
    let top_logprobs = body.integer("top_logprobs", 0..=MAX_TOP_LOGPROBS)?;
    if top_logprobs.is_some_and(|k| k > 0) && !includes_logprobs {
        let message = format!("`top_logprobs`: needs `include: [\"{INCLUDED_LOGPROBS}\"]`");
        return Err(FieldError::new("top_logprobs", message));
    }
    let mut shared = body.part(SHARED);
    if includes_logprobs {
        shared.insert("top_logprobs".to_owned(), json!(top_logprobs.unwrap_or(0)));
    }
    let has_format = format.is_some();
    if let Some(format) = format {
        shared.insert("response_format".to_owned(), format);
    }
    let mut shared = Fields::new("", Value::Object(shared))?;
    let read = record::within(SHARED, || {
        GenerationParams::read(&mut shared, &DIALECT, ignored)
    });
    let mut generation = read.map_err(in_own_words)?;
    if has_format {
        generation.form.path = "text.format.schema";
    }
    Ok(generation)
}

/// A fault of the format, which stands elsewhere in a chat.
fn in_own_words(error: FieldError) -> FieldError {
    let own = |text: &str| {
        let text = text.replace("response_format.json_schema", "text.format");
        text.replace("response_format", "text.format")
    };
    FieldError {
        param: error.param.as_deref().map(own),
        message: own(&error.message),
    }
}

fn read_top_logprobs(shared: &mut Fields) -> Result<Option<u32>, FieldError> {
    let asked = shared.integer("top_logprobs", 0..=MAX_TOP_LOGPROBS)?;
    Ok(asked.map(small))
}

/// Whether scores are to be included.
fn read_include(body: &mut Fields) -> Result<bool, FieldError> {
    let included = body.array("include")?.unwrap_or_default();
    for (index, value) in included.iter().enumerate() {
        if *value != json!(INCLUDED_LOGPROBS) {
            let path = format!("include[{index}]");
            return Err(FieldError::unsupported(
                path,
                "anything but \"message.output_text.logprobs\"",
            ));
        }
    }
    Ok(!included.is_empty())
}

/// `text` as given, and its format as a chat's `response_format`.
fn read_text(body: &mut Fields) -> Result<(Value, Option<Value>), FieldError> {
    let plain = || json!({"format": {"type": "text"}});
    let Some(value) = body.take("text") else {
        return Ok((plain(), None));
    };
    let mut text = Fields::new("text", value.clone())?;
    if !matches!(text.string("verbosity")?.as_deref(), None | Some("medium")) {
        return Err(FieldError::unsupported("text.verbosity", "this value"));
    }
    let Some(format) = text.take("format") else {
        return Ok((plain(), None));
    };
    let Value::Object(mut members) = format else {
        return Err(wrong_type("text.format", "an object", &format));
    };
    if members.get("type") == Some(&json!("json_schema")) {
        // A chat has these one level further in.
        members.remove("type");
        let chat = json!({"type": "json_schema", "json_schema": members});
        return Ok((value, Some(chat)));
    }
    Ok((value, Some(Value::Object(members))))
}

/// Fields that would need what is not done: state, tools, background work.
fn check_refused(body: &mut Fields) -> Result<(), FieldError> {
    body.harmless(HARMLESS);
    for name in [
        "background",
        "context_management",
        "conversation",
        "max_tool_calls",
        "previous_response_id",
        "prompt",
        "truncation",
    ] {
        body.only(name, "false [] \"auto\" \"none\" \"disabled\"")?;
    }
    Ok(())
}

fn read_reasoning(
    reasoning: Option<Value>,
    ignored: &mut Vec<String>,
) -> Result<ReasoningParams, FieldError> {
    let Some(reasoning) = reasoning else {
        return Ok(ReasoningParams::default());
    };
    let mut reasoning = Fields::new("reasoning", reasoning)?;
    let effort = read_effort(&mut reasoning, "effort")?;
    // Thoughts are told whole, so whatever summary is wanted is in them.
    reasoning.harmless(&["summary", "generate_summary"]);
    ignored.extend(reasoning.untaken());
    Ok(ReasoningParams {
        effort,
        budget: None,
    })
}

/// A tool, whose definition a chat has one level further in.
fn read_tool(path: String, definition: Value) -> Result<Tool, FieldError> {
    let mut fields = Fields::new(path, definition)?;
    let kind_path = fields.path_of("type");
    match fields.string("type")?.as_deref() {
        Some("function") => {}
        Some(_) => {
            return Err(FieldError::unsupported(
                kind_path,
                "any type but \"function\"",
            ));
        }
        None => {
            let message = format!("`{kind_path}`: is required");
            return Err(FieldError::new(kind_path, message));
        }
    }
    Tool::read(
        fields,
        |function| json!({"type": "function", "function": function}),
    )
}

fn read_input(
    body: &mut Fields,
    instructions: Option<&str>,
    ignored: &mut Vec<String>,
) -> Result<Vec<ChatMessage>, FieldError> {
    let mut messages = Vec::new();
    if let Some(text) = instructions {
        messages.push(ChatMessage::new(
            Role::System,
            Content::Text(text.to_owned()),
        ));
    }
    let items = match body.take("input") {
        None => return Err(FieldError::new("input", "`input`: is required")),
        Some(Value::String(text)) => {
            messages.push(ChatMessage::new(Role::User, Content::Text(text)));
            return Ok(messages);
        }
        Some(Value::Array(items)) => items,
        Some(other) => {
            return Err(wrong_type(
                "input",
                "a string or an array of messages",
                &other,
            ));
        }
    };
    if items.is_empty() || items.len() > MAX_MESSAGES {
        let message = format!(
            "`input`: must hold 1 to {MAX_MESSAGES} messages, not {}",
            items.len()
        );
        return Err(FieldError::new("input", message));
    }
    let mut thoughts = None;
    for (index, item) in items.into_iter().enumerate() {
        let mut item = Fields::new(format!("input[{index}]"), item)?;
        let kind_path = item.path_of("type");
        match item.string("type")?.as_deref() {
            None | Some("message") => {}
            Some("function_call") => {
                let call = read_call(&mut item)?;
                add_call(&mut messages, call, thoughts.take());
                ignored.extend(item.untaken());
                continue;
            }
            Some("function_call_output") => {
                messages.push(read_output(&mut item, ignored)?);
                ignored.extend(item.untaken());
                continue;
            }
            Some("reasoning") => {
                thoughts = read_thoughts(&mut item, ignored)?;
                ignored.extend(item.untaken());
                continue;
            }
            Some(_) => {
                let what = "anything but \"message\", \"function_call\", \"function_call_output\" and \"reasoning\"";
                return Err(FieldError::unsupported(kind_path, what));
            }
        }
        let roles = [
            ("system", Role::System),
            ("developer", Role::Developer),
            ("user", Role::User),
            ("assistant", Role::Assistant),
        ];
        let Some(role) = item.choice("role", &roles)? else {
            let path = item.path_of("role");
            let message = format!("`{path}`: is required");
            return Err(FieldError::new(path, message));
        };
        let content = read_content(&mut item, "content", ignored)?;
        // Items of earlier replies come back with these.
        item.harmless(&["id", "status"]);
        ignored.extend(item.untaken());
        let reasoning_content = thoughts.take().filter(|_| role == Role::Assistant);
        messages.push(ChatMessage {
            reasoning_content,
            ..ChatMessage::new(role, content)
        });
    }
    Ok(messages)
}

/// An earlier call.
fn read_call(item: &mut Fields) -> Result<MessageToolCall, FieldError> {
    item.harmless(&["id", "status"]);
    Ok(MessageToolCall {
        id: required(item, "call_id")?,
        name: required(item, "name")?,
        arguments: required(item, "arguments")?,
    })
}

/// Calls belong to the assistant's turn that they stand in.
fn add_call(messages: &mut Vec<ChatMessage>, call: MessageToolCall, thoughts: Option<String>) {
    match messages.last_mut() {
        Some(last) if last.role == Role::Assistant && thoughts.is_none() => {
            last.tool_calls.push(call);
        }
        _ => messages.push(ChatMessage {
            tool_calls: vec![call],
            reasoning_content: thoughts,
            ..ChatMessage::new(Role::Assistant, Content::Text(String::new()))
        }),
    }
}

fn read_output(item: &mut Fields, ignored: &mut Vec<String>) -> Result<ChatMessage, FieldError> {
    item.harmless(&["id", "status"]);
    let call_id = required(item, "call_id")?;
    let content = read_content(item, "output", ignored)?;
    Ok(ChatMessage {
        tool_call_id: Some(call_id),
        ..ChatMessage::new(Role::Tool, content)
    })
}

/// The text of an earlier reply's thoughts, if it is there.
fn read_thoughts(
    item: &mut Fields,
    ignored: &mut Vec<String>,
) -> Result<Option<String>, FieldError> {
    item.harmless(&["id", "status", "summary", "encrypted_content"]);
    let path = item.path_of("content");
    let parts = item.array("content")?.unwrap_or_default();
    let mut texts = Vec::new();
    for (index, part) in parts.into_iter().enumerate() {
        let mut part = Fields::new(format!("{path}[{index}]"), part)?;
        let kind_path = part.path_of("type");
        if part.string("type")?.as_deref() != Some("reasoning_text") {
            return Err(FieldError::unsupported(kind_path, "anything but text"));
        }
        texts.push(required(&mut part, "text")?);
        ignored.extend(part.untaken());
    }
    Ok((!texts.is_empty()).then(|| texts.concat()))
}

fn read_content(
    item: &mut Fields,
    name: &str,
    ignored: &mut Vec<String>,
) -> Result<Content, FieldError> {
    let path = item.path_of(name);
    let parts = match item.take(name) {
        Some(Value::String(text)) => return Ok(Content::Text(text)),
        Some(Value::Array(parts)) => parts,
        other => {
            let found = other.unwrap_or(Value::Null);
            return Err(wrong_type(&path, "a string or an array of parts", &found));
        }
    };
    let numbered = parts.into_iter().enumerate();
    let read = numbered.map(|(index, part)| {
        let mut part = Fields::new(format!("{path}[{index}]"), part)?;
        let kind_path = part.path_of("type");
        if !matches!(
            part.string("type")?.as_deref(),
            Some("input_text" | "output_text" | "text")
        ) {
            return Err(FieldError::unsupported(kind_path, "anything but text"));
        }
        let text_path = part.path_of("text");
        let text = part.string("text")?;
        part.harmless(&["annotations", "logprobs"]);
        ignored.extend(part.untaken());
        text.ok_or_else(|| {
            let message = format!("`{text_path}`: is required");
            FieldError::new(text_path, message)
        })
    });
    Ok(Content::Parts(read.collect::<Result<_, _>>()?))
}
