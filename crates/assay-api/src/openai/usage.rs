//! Token counts of a reply.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Exact counts over all choices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Tokens of the prompt, counted once however many choices there are.
    pub prompt_tokens: u64,
    /// Generated tokens of all choices, ending tokens included.
    pub completion_tokens: u64,
    /// Sum of both.
    pub total_tokens: u64,
    /// Where the prompt's tokens came from.
    pub prompt_tokens_details: PromptTokensDetails,
    /// What the generated tokens were.
    pub completion_tokens_details: CompletionTokensDetails,
}

/// Where the prompt's tokens came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PromptTokensDetails {
    /// Read from the prefix cache.
    pub cached_tokens: u64,
}

/// What the generated tokens were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CompletionTokensDetails {
    /// Spent on reasoning.
    pub reasoning_tokens: u64,
}
