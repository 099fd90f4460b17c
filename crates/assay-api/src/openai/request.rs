//! `POST /v1/chat/completions`, read strictly: every field has a type and a range, whatever needs the model
//! (ids, context) is left to the caller, unknown fields are listed.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::message::{ChatMessage, read_messages};
use super::refused;
use super::response_format::{ResponseFormat, read_response_format};
use super::tools::{ToolChoice, read_tool_choice, read_tools};
use crate::error::FieldError;
use crate::fields::{Fields, NumberRange, integer_value, number_value, wrong_type};
use crate::json;

/// Most stop strings.
pub const MAX_STOPS: usize = 16;
/// Longest stop string, in bytes.
pub const MAX_STOP_BYTES: usize = 256;
/// Most choices.
pub const MAX_CHOICES: i64 = 128;
/// Most alternatives per token.
pub const MAX_TOP_LOGPROBS: i64 = 20;
/// Longest `cache_salt`, in bytes.
pub const MAX_CACHE_SALT_BYTES: usize = 256;
/// Longest `chat_template_kwargs`, written as JSON, in bytes.
pub const MAX_TEMPLATE_KWARGS_BYTES: usize = 65_536;

/// Names that a template gets from the server; a request may not replace them.
const TEMPLATE_NAMES: [&str; 7] = [
    "messages",
    "add_generation_prompt",
    "bos_token",
    "eos_token",
    "tools",
    "documents",
    "chat_template",
];

/// A chat request whose fields are well-formed and in range.
#[derive(Clone, Debug, PartialEq)]
pub struct ChatCompletionRequest {
    /// Model asked for; `None` is the served one.
    pub model: Option<String>,
    /// 1 to [`super::message::MAX_MESSAGES`] messages.
    pub messages: Vec<ChatMessage>,
    /// Variables for the chat template.
    pub chat_template_kwargs: Map<String, Value>,
    /// Limit of the reply in tokens and the field that named it; any integer: its meaning needs the context.
    pub max_tokens: Option<(&'static str, i64)>,
    /// 1 to [`MAX_CHOICES`].
    pub n: u32,
    /// Random seed.
    pub seed: Option<i64>,
    /// Stop strings, none empty.
    pub stop: Vec<String>,
    /// 0 to 2.
    pub temperature: f64,
    /// (0, 1].
    pub top_p: f64,
    /// ≥ 1; `None` is off.
    pub top_k: Option<u32>,
    /// 0 to 1.
    pub min_p: f64,
    /// −2 to 2.
    pub presence_penalty: f64,
    /// −2 to 2.
    pub frequency_penalty: f64,
    /// (0, 10].
    pub repetition_penalty: f64,
    /// Token ids and −100 to 100, ascending ids; not yet checked against a vocabulary.
    pub logit_bias: Vec<(u32, f64)>,
    /// Scores to report.
    pub logprobs: Option<ChatLogprobs>,
    /// Whether token ids are reported.
    pub return_token_ids: bool,
    /// `Some` streams.
    pub stream: Option<StreamOptions>,
    /// Keeps what the prefix cache learns of this prompt to requests of the same salt; never empty.
    pub cache_salt: Option<String>,
    /// Form that the reply must have.
    pub response_format: ResponseFormat,
    /// At most [`super::tools::MAX_TOOLS`] definitions, as they were sent.
    pub tools: Vec<Value>,
    /// Whether the model may call them.
    pub tool_choice: ToolChoice,
    /// Paths of fields that the server does not know.
    pub ignored: Vec<String>,
}

/// Scores to report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChatLogprobs {
    /// Alternatives per token, 0 to [`MAX_TOP_LOGPROBS`].
    pub top_logprobs: u32,
    /// Where values are read.
    pub mode: LogprobsMode,
    /// Whether the ending token is reported.
    pub end: bool,
}

/// Where reported values are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogprobsMode {
    /// The untouched distribution of the model.
    #[default]
    Raw,
    /// The distribution that was sampled from.
    Processed,
}

/// How a reply is streamed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamOptions {
    /// Whether a last chunk carries the token counts.
    pub include_usage: bool,
}

impl ChatCompletionRequest {
    /// Reads a request body.
    ///
    /// # Errors
    /// Not JSON, or the first field that is missing, of a wrong type, out of range or not supported.
    pub fn from_json(body: &[u8]) -> Result<Self, FieldError> {
        let mut body = Fields::new("", json::parse(body)?)?;
        let mut ignored = Vec::new();
        let request = Self {
            model: body.string("model")?,
            max_tokens: read_max_tokens(&mut body)?,
            n: small(body.integer("n", 1..=MAX_CHOICES)?.unwrap_or(1)),
            seed: body.integer("seed", i64::MIN..=i64::MAX)?,
            stop: read_stop(&mut body)?,
            temperature: body
                .number("temperature", NumberRange::closed(0.0, 2.0))?
                .unwrap_or(1.0),
            top_p: body
                .number("top_p", NumberRange::above(0.0, 1.0))?
                .unwrap_or(1.0),
            top_k: read_top_k(&mut body)?,
            min_p: body
                .number("min_p", NumberRange::closed(0.0, 1.0))?
                .unwrap_or(0.0),
            presence_penalty: read_penalty(&mut body, "presence_penalty")?,
            frequency_penalty: read_penalty(&mut body, "frequency_penalty")?,
            repetition_penalty: body
                .number("repetition_penalty", NumberRange::closed(0.01, 10.0))?
                .unwrap_or(1.0),
            logit_bias: read_logit_bias(&mut body)?,
            logprobs: read_logprobs(&mut body)?,
            return_token_ids: body.boolean("return_token_ids")?.unwrap_or(false),
            stream: read_stream(&mut body, &mut ignored)?,
            cache_salt: read_cache_salt(&mut body)?,
            chat_template_kwargs: read_template_kwargs(&mut body)?,
            response_format: read_response_format(&mut body, &mut ignored)?,
            tools: read_tools(&mut body)?,
            tool_choice: read_tool_choice(&mut body)?,
            messages: read_messages(&mut body, &mut ignored)?,
            ignored: Vec::new(),
        };
        refused::check(&mut body)?;
        ignored.splice(0..0, body.untaken());
        Ok(Self { ignored, ..request })
    }
}

/// For values whose range was checked to lie within u32.
fn small(value: i64) -> u32 {
    u32::try_from(value).expect("the range was checked when the field was read")
}

fn read_max_tokens(body: &mut Fields) -> Result<Option<(&'static str, i64)>, FieldError> {
    let mut found = None;
    // The newer name is read last, so that it wins.
    for name in ["max_tokens", "max_completion_tokens"] {
        if let Some(value) = body.integer(name, i64::MIN..=i64::MAX)? {
            found = Some((name, value));
        }
    }
    Ok(found)
}

fn read_top_k(body: &mut Fields) -> Result<Option<u32>, FieldError> {
    let top_k = body.integer("top_k", -1..=i64::from(u32::MAX))?;
    Ok(top_k.filter(|k| *k > 0).map(small))
}

fn read_penalty(body: &mut Fields, name: &str) -> Result<f64, FieldError> {
    let penalty = body.number(name, NumberRange::closed(-2.0, 2.0))?;
    Ok(penalty.unwrap_or(0.0))
}

fn read_stop(body: &mut Fields) -> Result<Vec<String>, FieldError> {
    let stops = match body.take("stop") {
        None => return Ok(Vec::new()),
        Some(stop @ Value::String(_)) => vec![("stop".to_owned(), stop)],
        Some(Value::Array(stops)) if stops.len() > MAX_STOPS => {
            let message = format!(
                "`stop`: must hold at most {MAX_STOPS} strings, not {}",
                stops.len()
            );
            return Err(FieldError::new("stop", message));
        }
        Some(Value::Array(stops)) => stops
            .into_iter()
            .enumerate()
            .map(|(index, stop)| (format!("stop[{index}]"), stop))
            .collect(),
        Some(other) => {
            return Err(wrong_type(
                "stop",
                "a string or an array of strings",
                &other,
            ));
        }
    };
    let read = stops.into_iter().map(|(path, stop)| match stop {
        Value::String(text) if (1..=MAX_STOP_BYTES).contains(&text.len()) => Ok(text),
        Value::String(text) => {
            let message = format!(
                "`{path}`: must be 1 to {MAX_STOP_BYTES} bytes long, not {}",
                text.len()
            );
            Err(FieldError::new(path, message))
        }
        other => Err(wrong_type(&path, "a string", &other)),
    });
    read.collect()
}

/// `param` is the field alone: keys are client text of any length.
fn read_logit_bias(body: &mut Fields) -> Result<Vec<(u32, f64)>, FieldError> {
    let Some(fields) = body.object("logit_bias")? else {
        return Ok(Vec::new());
    };
    let mut biases = Vec::new();
    for (key, value) in fields.into_rest() {
        // Only one spelling per id, so that no id is named twice.
        let id = key.parse::<u32>().ok().filter(|id| id.to_string() == key);
        let Some(id) = id else {
            let message = format!(
                "`logit_bias`: keys must be token ids in plain decimal, not {}",
                json::quote(&key)
            );
            return Err(FieldError::new("logit_bias", message));
        };
        let bias = number_value(
            &format!("logit_bias.{id}"),
            &value,
            NumberRange::closed(-100.0, 100.0),
        );
        let bias = bias.map_err(|error| FieldError {
            param: Some("logit_bias".to_owned()),
            ..error
        })?;
        biases.push((id, bias));
    }
    biases.sort_by_key(|(id, _)| *id);
    Ok(biases)
}

fn read_logprobs(body: &mut Fields) -> Result<Option<ChatLogprobs>, FieldError> {
    let switch = body.take("logprobs");
    let top_logprobs = body.integer("top_logprobs", 0..=MAX_TOP_LOGPROBS)?;
    let modes = [
        ("raw", LogprobsMode::Raw),
        ("processed", LogprobsMode::Processed),
    ];
    let mode = body.choice("logprobs_mode", &modes)?.unwrap_or_default();
    let end = body.boolean("logprobs_end")?.unwrap_or(false);
    let top_logprobs = match switch {
        None | Some(Value::Bool(false)) => {
            if top_logprobs.is_some_and(|k| k > 0) {
                return Err(FieldError::new(
                    "top_logprobs",
                    "`top_logprobs`: needs `logprobs: true`",
                ));
            }
            return Ok(None);
        }
        Some(Value::Bool(true)) => top_logprobs.unwrap_or(0),
        Some(value @ Value::Number(_)) => {
            let legacy = integer_value("logprobs", &value, 0..=MAX_TOP_LOGPROBS)?;
            if top_logprobs.is_some_and(|k| k != legacy) {
                return Err(FieldError::new(
                    "top_logprobs",
                    format!(
                        "`top_logprobs`: differs from `logprobs: {legacy}`, which asks for as many"
                    ),
                ));
            }
            legacy
        }
        Some(other) => return Err(wrong_type("logprobs", "true or false", &other)),
    };
    Ok(Some(ChatLogprobs {
        top_logprobs: small(top_logprobs),
        mode,
        end,
    }))
}

fn read_stream(
    body: &mut Fields,
    ignored: &mut Vec<String>,
) -> Result<Option<StreamOptions>, FieldError> {
    let stream = body.boolean("stream")?.unwrap_or(false);
    let Some(mut options) = body.object("stream_options")? else {
        return Ok(stream.then(StreamOptions::default));
    };
    if !stream {
        return Err(FieldError::new(
            "stream_options",
            "`stream_options`: needs `stream: true`",
        ));
    }
    let include_usage = options.boolean("include_usage")?.unwrap_or(false);
    for name in ["include_obfuscation", "continuous_usage_stats"] {
        if options.boolean(name)? == Some(true) {
            return Err(FieldError::unsupported(options.path_of(name), "true"));
        }
    }
    ignored.extend(options.untaken());
    Ok(Some(StreamOptions { include_usage }))
}

fn read_cache_salt(body: &mut Fields) -> Result<Option<String>, FieldError> {
    const NAME: &str = "cache_salt";
    let salt = body.string(NAME)?;
    match salt.as_ref().map(String::len) {
        None | Some(1..=MAX_CACHE_SALT_BYTES) => Ok(salt),
        Some(len) => {
            let message =
                format!("`{NAME}`: must be 1 to {MAX_CACHE_SALT_BYTES} bytes long, not {len}");
            Err(FieldError::new(NAME, message))
        }
    }
}

fn read_template_kwargs(body: &mut Fields) -> Result<Map<String, Value>, FieldError> {
    const NAME: &str = "chat_template_kwargs";
    let Some(fields) = body.object(NAME)? else {
        return Ok(Map::new());
    };
    let kwargs = fields.into_rest();
    if let Some(name) = TEMPLATE_NAMES
        .into_iter()
        .find(|name| kwargs.contains_key(*name))
    {
        let message = format!("`{NAME}`: may not replace `{name}`");
        return Err(FieldError::new(NAME, message));
    }
    let kwargs = Value::Object(kwargs);
    let written_bytes = kwargs.to_string().len();
    if written_bytes > MAX_TEMPLATE_KWARGS_BYTES {
        let message = format!(
            "`{NAME}`: must be at most {MAX_TEMPLATE_KWARGS_BYTES} bytes long, not {written_bytes}"
        );
        return Err(FieldError::new(NAME, message));
    }
    match kwargs {
        Value::Object(kwargs) => Ok(kwargs),
        other => Err(wrong_type(NAME, "an object", &other)),
    }
}
