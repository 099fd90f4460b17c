//! Engine entries to wire entries. One engine entry gives one wire entry; nothing is looked up elsewhere.

use assay_api::openai::{Alternative, GenerationParams, LogprobEntry, LogprobsMode};
use assay_engine::{Entry, NamedLogprobs, TokenLogprobs, TokenOutput, TopLogprob};

use crate::error::ApiError;
use crate::model_text::ModelText;

/// What is written for a token that the processed distribution excludes; JSON has no minus infinity.
const EXCLUDED: f64 = -9999.0;

/// How entries are written for one request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryStyle {
    pub(crate) mode: LogprobsMode,
    /// Whether ids are written beside the texts.
    pub(crate) token_ids: bool,
    /// Whether ids are written in place of the texts.
    pub(crate) as_token_ids: bool,
    pub(crate) listing: Listing,
}

/// Which tokens an entry lists beside the chosen one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listing {
    /// The most likely ones.
    MostLikely,
    /// Those that the request named.
    Named,
    /// Those that the request named, as a distribution over them alone.
    NamedAlone,
}

impl EntryStyle {
    /// The style that a request asks for, with `named` for the tokens that it may name; `None` asks for no scores.
    pub(crate) fn of(asked: &GenerationParams, named: Listing) -> Option<Self> {
        asked.logprobs.map(|logprobs| Self {
            mode: logprobs.mode,
            token_ids: asked.return_token_ids,
            as_token_ids: asked.return_tokens_as_token_ids,
            listing: match asked.named_tokens {
                Some(_) => named,
                None => Listing::MostLikely,
            },
        })
    }
}

/// How a token is written where ids stand in place of texts.
pub(crate) fn token_id_text(token_id: u32) -> String {
    format!("token_id:{token_id}")
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

/// Scores that were asked for and are not there: never made up, so a fault of ours.
pub(crate) fn missing_scores(token_id: u32) -> ApiError {
    ApiError::Internal(format!(
        "token {token_id} came without the scores asked for"
    ))
}

fn write(
    output: &TokenOutput,
    (token, bytes): (String, Vec<u8>),
    style: EntryStyle,
    text: &ModelText,
) -> Result<LogprobEntry, ApiError> {
    let token_id = output.token_id;
    let missing = || missing_scores(token_id);
    let scores = output.logprobs.as_ref().ok_or_else(missing)?;
    let named = || scores.named.as_ref().ok_or_else(missing);
    let listed = match style.listing {
        Listing::MostLikely => Listed::raw(scores, &scores.top_logprobs),
        Listing::Named => Listed::raw(scores, &named()?.candidates),
        Listing::NamedAlone => Listed::renormalised(token_id, scores, named()?),
    };
    let spell = |token_id, text: String| {
        if style.as_token_ids {
            token_id_text(token_id)
        } else {
            text
        }
    };
    let alternatives = listed.alternatives.into_iter().map(|top| {
        let (token, bytes) = text.spell(top.token_id);
        Ok(Alternative {
            token: spell(top.token_id, token),
            logprob: finite(top.logprob, style.mode)?,
            bytes,
            token_id: style.token_ids.then_some(top.token_id),
        })
    });
    Ok(LogprobEntry {
        token: spell(token_id, token),
        logprob: finite(listed.chosen, style.mode)?,
        bytes,
        top_logprobs: alternatives.collect::<Result<_, ApiError>>()?,
        token_id: style.token_ids.then_some(token_id),
        allowed_logprob: listed
            .allowed
            .map(|mass| finite(mass, style.mode))
            .transpose()?,
    })
}

/// The values of one entry.
struct Listed {
    chosen: f64,
    alternatives: Vec<TopLogprob>,
    /// Mass of the named tokens.
    allowed: Option<f64>,
}

impl Listed {
    fn raw(scores: &TokenLogprobs, alternatives: &[TopLogprob]) -> Self {
        Self {
            chosen: scores.logprob,
            alternatives: alternatives.to_vec(),
            allowed: None,
        }
    }

    /// The distribution over the named tokens alone; a chosen token that is not among them keeps its own value.
    fn renormalised(token_id: u32, scores: &TokenLogprobs, named: &NamedLogprobs) -> Self {
        let candidates = named.candidates.iter().map(|one| TopLogprob {
            token_id: one.token_id,
            logprob: one.logprob - named.total_logprob,
        });
        let alternatives: Vec<_> = candidates.collect();
        let own = alternatives.iter().find(|one| one.token_id == token_id);
        Self {
            chosen: own.map_or(scores.logprob, |own| own.logprob),
            alternatives,
            allowed: Some(named.total_logprob),
        }
    }
}

/// A value as JSON can hold it.
pub(crate) fn finite(logprob: f64, mode: LogprobsMode) -> Result<f64, ApiError> {
    match (logprob, mode) {
        (value, _) if value.is_finite() => Ok(value),
        (f64::NEG_INFINITY, LogprobsMode::Processed) => Ok(EXCLUDED),
        (value, mode) => Err(ApiError::Internal(format!(
            "the engine sent {value} as a {mode:?} logprob"
        ))),
    }
}
