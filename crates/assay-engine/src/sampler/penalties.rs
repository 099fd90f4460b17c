//! Repetition, presence and frequency penalties on tokens already seen.

use std::collections::BTreeMap;

use assay_models::TokenId;

use crate::request::SamplingParams;

/// Tokens of one sequence: which stood in the prompt, how often each came in the reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenTokens {
    /// Occurrences in the reply; 0 for a token of the prompt alone.
    num_in_reply: BTreeMap<TokenId, u32>,
}

impl SeenTokens {
    /// A sequence with this prompt and no reply yet.
    pub fn of_prompt(prompt_token_ids: &[TokenId]) -> Self {
        Self {
            num_in_reply: prompt_token_ids.iter().map(|&id| (id, 0)).collect(),
        }
    }

    /// Counts a token of the reply.
    pub fn push(&mut self, token_id: TokenId) {
        *self.num_in_reply.entry(token_id).or_insert(0) += 1;
    }
}

/// Whether any penalty moves a score.
pub(super) fn are_on(params: &SamplingParams) -> bool {
    params.repetition_penalty != 1.0
        || params.presence_penalty != 0.0
        || params.frequency_penalty != 0.0
}

/// Penalises the score of every seen token: repetition, then presence, then frequency.
pub(super) fn apply(scores: &mut [f64], params: &SamplingParams, seen: &SeenTokens) {
    for (&token_id, &num_in_reply) in &seen.num_in_reply {
        let score = &mut scores[token_id as usize];
        *score = if *score > 0.0 {
            *score / params.repetition_penalty
        } else {
            *score * params.repetition_penalty
        };
        if num_in_reply > 0 {
            *score -= params.presence_penalty;
            *score -= params.frequency_penalty * f64::from(num_in_reply);
        }
    }
}
