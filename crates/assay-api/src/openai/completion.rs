//! Replies of `POST /v1/completions`: one object, or a stream of objects of the same shape that add up to it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::chat::FinishReason;
use super::generation::LogprobsMode;
use super::logprobs::LogprobEntry;
use super::prompt_logprobs::PromptLogprobs;
use super::usage::Usage;

/// A reply, or a chunk of one.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TextCompletion {
    /// Name of the reply, the same in all its chunks.
    pub id: String,
    /// Always `text_completion`.
    #[schemars(extend("const" = "text_completion"))]
    pub object: String,
    /// Seconds since 1970, the same in all chunks.
    pub created: u64,
    /// The model that answers.
    pub model: String,
    /// By ascending index; in a chunk a piece of one, or none beside the usage.
    pub choices: Vec<CompletionChoice>,
    /// Token counts; in a chunk present where the request asked: null, and the counts in the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Option<Usage>>,
    /// Weights, numerics and version in one short hash.
    pub system_fingerprint: String,
    /// The seed that is used, drawn where the request named none.
    pub seed: i64,
    /// Where the scores are read; present where the request asked for scores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logprobs_mode: Option<LogprobsMode>,
    /// What the numbers can be computed again from; in a stream of the last chunk, where the request or the server asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Value>,
}

/// A choice, or a piece of one: texts and lists are appended, the rest is set by the last piece.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct CompletionChoice {
    /// Which choice: all of the first prompt, then those of the next.
    pub index: usize,
    /// Prompt where echoed, and reply.
    pub text: String,
    /// Its scores; null where the request did not ask.
    pub logprobs: Option<CompletionLogprobs>,
    /// Why it ended.
    pub finish_reason: Option<FinishReason>,
    /// The stop string that ended it, if one did.
    pub stop_reason: Option<String>,
    /// Scores of the prompt; present where the request asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_logprobs: Option<PromptLogprobs>,
    /// Ids of the prompt; present where the request asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_token_ids: Option<Vec<u32>>,
    /// Ids of the visible generated tokens; present where the request asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_ids: Option<Vec<u32>>,
}

/// Scores in the legacy form: four arrays of one length, an element for each token of the text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct CompletionLogprobs {
    /// Text that became complete with the token; joined they are the choice's text.
    pub tokens: Vec<String>,
    /// Natural log of its probability; null for the prompt's first token, which nothing stands before.
    pub token_logprobs: Vec<Option<f64>>,
    /// The most likely tokens at its place, and the token itself.
    pub top_logprobs: Vec<Option<TopLogprobs>>,
    /// Where its text begins, in code points from the start of the prompt.
    pub text_offset: Vec<usize>,
    /// An entry for each of them as chat completions have it, null where there is no score; present where the request
    /// asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Vec<Option<LogprobEntry>>>,
    /// Token that ended the reply; present where the request asked, null where no token did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<Option<LogprobEntry>>,
}

/// Token texts and their log-probabilities, most likely first; each text once.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct TopLogprobs(#[schemars(with = "BTreeMap<String, f64>")] pub Vec<(String, f64)>);

impl Serialize for TopLogprobs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(text, logprob)| (text, logprob)))
    }
}
