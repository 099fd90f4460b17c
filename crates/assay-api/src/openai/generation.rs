//! What chat and text completions share: how a token is drawn, when a reply ends, what is reported with it
//! and how it travels. Whatever needs the model (ids, context) is left to the caller.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::response_format::{ReplyForm, read_form};
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
/// Most tokens that may be named for their scores.
pub const MAX_NAMED_TOKENS: usize = 4_096;
/// Longest `cache_salt`, in bytes.
pub const MAX_CACHE_SALT_BYTES: usize = 256;

/// How to draw, when to stop, what to report: well-formed and in range.
#[derive(Clone, Debug, PartialEq)]
pub struct GenerationParams {
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
    /// 0.01 to 10.
    pub repetition_penalty: f64,
    /// Token ids and −100 to 100, ascending ids; not yet checked against a vocabulary.
    pub logit_bias: Vec<(u32, f64)>,
    /// Scores of the reply's tokens.
    pub logprobs: Option<ReplyLogprobs>,
    /// Tokens whose scores are reported at every place, whatever their rank; without `logprobs` of no effect.
    pub named_tokens: Option<NamedTokens>,
    /// Scores of the prompt's tokens: alternatives per token, 0 to [`MAX_TOP_LOGPROBS`]; never of a stream.
    pub prompt_logprobs: Option<u32>,
    /// Whether token ids are reported.
    pub return_token_ids: bool,
    /// Whether tokens are spelled `token_id:N` where scores are reported.
    pub return_tokens_as_token_ids: bool,
    /// `Some` streams.
    pub stream: Option<StreamOptions>,
    /// Keeps what the prefix cache learns of this prompt to requests of the same salt; never empty.
    pub cache_salt: Option<String>,
    /// Form that the reply must have.
    pub form: ReplyForm,
}

/// Scores of a reply's tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyLogprobs {
    /// Alternatives per token, 0 to [`MAX_TOP_LOGPROBS`].
    pub top_logprobs: u32,
    /// Where values are read.
    pub mode: LogprobsMode,
    /// Whether the ending token is reported.
    pub end: bool,
}

/// Tokens named for their scores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedTokens {
    /// The field that named them.
    pub field: &'static str,
    /// 1 to [`MAX_NAMED_TOKENS`] ids, none twice, in the request's order; not yet checked against a vocabulary.
    pub token_ids: Vec<u32>,
}

/// Where reported values are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// What an endpoint has in its own words.
pub(crate) struct Dialect {
    /// Reads how many alternatives are asked for; `None` asks for no scores.
    pub(crate) read_top_logprobs: fn(&mut Fields) -> Result<Option<u32>, FieldError>,
    /// Fields that may name tokens.
    pub(crate) named_tokens: &'static [&'static str],
}

impl GenerationParams {
    /// Takes the shared fields; appends paths of unknown ones inside them to `ignored`.
    pub(crate) fn read(
        body: &mut Fields,
        dialect: &Dialect,
        ignored: &mut Vec<String>,
    ) -> Result<Self, FieldError> {
        let params = Self {
            max_tokens: read_max_tokens(body)?,
            n: small(body.integer("n", 1..=MAX_CHOICES)?.unwrap_or(1)),
            seed: body.integer("seed", i64::MIN..=i64::MAX)?,
            stop: read_stop(body)?,
            temperature: body
                .number("temperature", NumberRange::closed(0.0, 2.0))?
                .unwrap_or(1.0),
            top_p: body
                .number("top_p", NumberRange::above(0.0, 1.0))?
                .unwrap_or(1.0),
            top_k: read_top_k(body)?,
            min_p: body
                .number("min_p", NumberRange::closed(0.0, 1.0))?
                .unwrap_or(0.0),
            presence_penalty: read_penalty(body, "presence_penalty")?,
            frequency_penalty: read_penalty(body, "frequency_penalty")?,
            repetition_penalty: body
                .number("repetition_penalty", NumberRange::closed(0.01, 10.0))?
                .unwrap_or(1.0),
            logit_bias: read_logit_bias(body)?,
            logprobs: read_logprobs(body, dialect)?,
            named_tokens: read_named_tokens(body, dialect.named_tokens)?,
            prompt_logprobs: body
                .integer("prompt_logprobs", 0..=MAX_TOP_LOGPROBS)?
                .map(small),
            return_token_ids: body.boolean("return_token_ids")?.unwrap_or(false),
            return_tokens_as_token_ids: body
                .boolean("return_tokens_as_token_ids")?
                .unwrap_or(false),
            stream: read_stream(body, ignored)?,
            cache_salt: read_cache_salt(body)?,
            form: read_form(body, ignored)?,
        };
        params.check_together()?;
        Ok(params)
    }

    /// Combinations that cannot be honoured.
    fn check_together(&self) -> Result<(), FieldError> {
        if self.prompt_logprobs.is_some() && self.stream.is_some() {
            let what = "together with `stream: true`";
            return Err(FieldError::unsupported("prompt_logprobs", what));
        }
        let mode = self.logprobs.map(|asked| asked.mode);
        match &self.named_tokens {
            Some(named) if mode == Some(LogprobsMode::Processed) => {
                let message = format!(
                    "`logprobs_mode`: must be \"raw\" where `{}` is given",
                    named.field
                );
                Err(FieldError::new("logprobs_mode", message))
            }
            _ => Ok(()),
        }
    }
}

fn read_logprobs(
    body: &mut Fields,
    dialect: &Dialect,
) -> Result<Option<ReplyLogprobs>, FieldError> {
    let top_logprobs = (dialect.read_top_logprobs)(body)?;
    let modes = [
        ("raw", LogprobsMode::Raw),
        ("processed", LogprobsMode::Processed),
    ];
    let mode = body.choice("logprobs_mode", &modes)?.unwrap_or_default();
    let end = body.boolean("logprobs_end")?.unwrap_or(false);
    Ok(top_logprobs.map(|top_logprobs| ReplyLogprobs {
        top_logprobs,
        mode,
        end,
    }))
}

fn read_named_tokens(
    body: &mut Fields,
    fields: &[&'static str],
) -> Result<Option<NamedTokens>, FieldError> {
    let mut named: Option<NamedTokens> = None;
    for &field in fields {
        let Some(values) = body.array(field)? else {
            continue;
        };
        if let Some(other) = &named {
            let message = format!(
                "`{field}`: only one of it and `{}` may be given",
                other.field
            );
            return Err(FieldError::new(field, message));
        }
        let token_ids = token_ids(field, &values)?;
        let count = token_ids.len();
        if !(1..=MAX_NAMED_TOKENS).contains(&count) {
            let message =
                format!("`{field}`: must hold 1 to {MAX_NAMED_TOKENS} token ids, not {count}");
            return Err(FieldError::new(field, message));
        }
        let mut sorted = token_ids.clone();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            let message = format!("`{field}`: token id {} occurs twice", pair[0]);
            return Err(FieldError::new(field, message));
        }
        named = Some(NamedTokens { field, token_ids });
    }
    Ok(named)
}

/// Token ids; a fault is told by place, but its `param` is the field alone.
pub(crate) fn token_ids(field: &str, values: &[Value]) -> Result<Vec<u32>, FieldError> {
    let ids = values.iter().enumerate().map(|(index, value)| {
        let path = format!("{field}[{index}]");
        match integer_value(&path, value, 0..=i64::from(u32::MAX)) {
            Ok(id) => Ok(small(id)),
            Err(error) => Err(FieldError::new(field, error.message)),
        }
    });
    ids.collect()
}

/// For values whose range was checked to lie within u32.
pub(super) fn small(value: i64) -> u32 {
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

pub(crate) fn read_cache_salt(body: &mut Fields) -> Result<Option<String>, FieldError> {
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
