//! Log-probability entries. An entry belongs to the token whose text it spells; keys are exactly these.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Scores of one choice, or of one chunk of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChoiceLogprobs {
    /// One entry for each token that spells visible text; their `token`s joined are the content.
    pub content: Vec<LogprobEntry>,
    /// Always null: refusals are not told apart from content.
    #[schemars(with = "()")]
    pub refusal: Option<Vec<LogprobEntry>>,
    /// The same for the reasoning; present where the model's replies may have some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<Vec<LogprobEntry>>,
    /// The same for what the model wrote as tool calls, between their tags; present where the request asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Vec<LogprobEntry>>,
    /// Token that ended the reply; present where the request asked, null where no token did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<Option<LogprobEntry>>,
}

/// One generated token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogprobEntry {
    /// Text that became complete with this token.
    pub token: String,
    /// Natural log of its probability; finite.
    pub logprob: f64,
    /// Its own visible bytes.
    pub bytes: Vec<u8>,
    /// The most likely tokens at this place, or those that the request named, most likely first, ties by lower id.
    pub top_logprobs: Vec<Alternative>,
    /// Its id; present where the request asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_id: Option<u32>,
    /// Natural log of the named tokens' probability together; present where the request named some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_logprob: Option<f64>,
}

/// One alternative.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Alternative {
    /// Its text, or `bytes:\xHH…` where its bytes are not text by themselves.
    pub token: String,
    /// Natural log of its probability; finite.
    pub logprob: f64,
    /// Its raw bytes.
    pub bytes: Vec<u8>,
    /// Its id; present where the request asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_id: Option<u32>,
}
