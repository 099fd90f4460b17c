//! `POST /v1/responses`: its request, read strictly and stateless.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::conversation::Conversation;
use super::generation::{Dialect, GenerationParams, MAX_TOP_LOGPROBS, small};
use super::message::{ChatMessage, Content, MAX_MESSAGES, Role};
use super::reasoning::ReasoningParams;
use super::tools::Tools;
use crate::error::FieldError;
use crate::fields::{Fields, wrong_type};
use crate::json as json_text;

/// What `include` may hold: the one thing that is not there by itself.
const INCLUDED_LOGPROBS: &str = "message.output_text.logprobs";

/// Accepted with any value: they change neither tokens nor scores.
const HARMLESS: &[&str] = &[
    "client_metadata",
    "metadata",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning",
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
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EchoedFields {
    /// The instructions.
    pub instructions: Option<String>,
    /// The limit of the reply.
    pub max_output_tokens: Option<i64>,
    /// As given.
    pub metadata: Value,
    /// As given.
    pub text: Value,
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
        check_refused(&mut body)?;
        ignored.splice(0..0, body.untaken());
        Ok(Self {
            model,
            conversation: Conversation {
                messages,
                chat_template_kwargs: Map::new(),
                tools: Tools::default(),
                reasoning: ReasoningParams::default(),
            },
            generation,
            echoed: EchoedFields {
                instructions,
                max_output_tokens,
                metadata,
                text,
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
    let mut shared = Map::new();
    for name in SHARED {
        if let Some(value) = body.take(name) {
            shared.insert((*name).to_owned(), value);
        }
    }
    if includes_logprobs {
        shared.insert("top_logprobs".to_owned(), json!(top_logprobs.unwrap_or(0)));
    }
    let has_format = format.is_some();
    if let Some(format) = format {
        shared.insert("response_format".to_owned(), format);
    }
    let mut shared = Fields::new("", Value::Object(shared))?;
    let read = GenerationParams::read(&mut shared, &DIALECT, ignored);
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
    for name in HARMLESS {
        let _ = body.take(name);
    }
    let none = [
        json!(null),
        json!(false),
        json!([]),
        json!("auto"),
        json!("none"),
        json!("disabled"),
    ];
    for name in [
        "background",
        "context_management",
        "conversation",
        "max_tool_calls",
        "previous_response_id",
        "prompt",
        "tool_choice",
        "tools",
        "truncation",
    ] {
        let is_refused = body.take(name).is_some_and(|value| !none.contains(&value));
        if is_refused {
            return Err(FieldError::unsupported(name, "this value"));
        }
    }
    let _ = body.boolean("parallel_tool_calls")?;
    Ok(())
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
    for (index, item) in items.into_iter().enumerate() {
        let mut item = Fields::new(format!("input[{index}]"), item)?;
        let kind_path = item.path_of("type");
        if !matches!(item.string("type")?.as_deref(), None | Some("message")) {
            return Err(FieldError::unsupported(
                kind_path,
                "anything but \"message\"",
            ));
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
        let content = read_content(&mut item, ignored)?;
        // Items of earlier replies come back with these.
        let _ = (item.take("id"), item.take("status"));
        ignored.extend(item.untaken());
        messages.push(ChatMessage::new(role, content));
    }
    Ok(messages)
}

fn read_content(item: &mut Fields, ignored: &mut Vec<String>) -> Result<Content, FieldError> {
    let path = item.path_of("content");
    let parts = match item.take("content") {
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
        let _ = (part.take("annotations"), part.take("logprobs"));
        ignored.extend(part.untaken());
        text.ok_or_else(|| {
            let message = format!("`{text_path}`: is required");
            FieldError::new(text_path, message)
        })
    });
    Ok(Content::Parts(read.collect::<Result<_, _>>()?))
}
