//! Engine entries to wire entries. One engine entry gives one wire entry; nothing is looked up elsewhere.

use assay_api::openai::{Alternative, LogprobEntry, LogprobsMode};
use assay_engine::{Entry, TokenOutput};

use crate::error::ApiError;
use crate::model_text::ModelText;

/// What is written for a token that the processed distribution excludes; JSON has no minus infinity.
const EXCLUDED: f64 = -9999.0;

/// How entries are written for one request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryStyle {
    pub(crate) mode: LogprobsMode,
    pub(crate) token_ids: bool,
}

/// The entry of a token that spells visible text.
pub(crate) fn visible(
    entry: &Entry,
    style: EntryStyle,
    text: &ModelText,
) -> Result<LogprobEntry, ApiError> {
    let spelled = (entry.text.clone(), entry.bytes.clone());
    write(&entry.output, spelled, style, text)
}

/// The entry of the token that ended the reply: it has no place in the text, so it spells itself.
pub(crate) fn end(
    output: &TokenOutput,
    style: EntryStyle,
    text: &ModelText,
) -> Result<LogprobEntry, ApiError> {
    let spelled = text.spell(output.token_id);
    write(output, spelled, style, text)
}

fn write(
    output: &TokenOutput,
    (token, bytes): (String, Vec<u8>),
    style: EntryStyle,
    text: &ModelText,
) -> Result<LogprobEntry, ApiError> {
    let Some(scores) = &output.logprobs else {
        // Never made up: a missing score is a fault of ours.
        let detail = format!(
            "token {} came without the scores asked for",
            output.token_id
        );
        return Err(ApiError::Internal(detail));
    };
    let alternatives = scores.top_logprobs.iter().map(|top| {
        let (token, bytes) = text.spell(top.token_id);
        Ok(Alternative {
            token,
            logprob: finite(top.logprob, style.mode)?,
            bytes,
            token_id: style.token_ids.then_some(top.token_id),
        })
    });
    Ok(LogprobEntry {
        token,
        logprob: finite(scores.logprob, style.mode)?,
        bytes,
        top_logprobs: alternatives.collect::<Result<_, ApiError>>()?,
        token_id: style.token_ids.then_some(output.token_id),
    })
}

fn finite(logprob: f64, mode: LogprobsMode) -> Result<f64, ApiError> {
    match (logprob, mode) {
        (value, _) if value.is_finite() => Ok(value),
        (f64::NEG_INFINITY, LogprobsMode::Processed) => Ok(EXCLUDED),
        (value, mode) => Err(ApiError::Internal(format!(
            "the engine sent {value} as a {mode:?} logprob"
        ))),
    }
}
