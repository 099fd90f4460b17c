//! Scores of the prompt's tokens (`prompt_logprobs`).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

/// An element for each token of the prompt; null for the first, which nothing stands before.
pub type PromptLogprobs = Vec<Option<PromptPosition>>;

/// Scores at one place of the prompt, by token id: the token itself, then the most likely ones.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct PromptPosition(
    #[schemars(with = "BTreeMap<String, PromptLogprob>")] pub Vec<(u32, PromptLogprob)>,
);

/// One token's score.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PromptLogprob {
    /// Natural log of its probability, raw; finite.
    pub logprob: f64,
    /// Place among all of the vocabulary by probability, ties by lower id; 1 is the most likely.
    pub rank: u32,
    /// Its text, or `bytes:\xHH…` where its bytes are not text by themselves.
    pub decoded_token: String,
}

impl Serialize for PromptPosition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(id, scored)| (id.to_string(), scored)))
    }
}
