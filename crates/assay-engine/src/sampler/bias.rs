//! `logit_bias`: a number added to named logits, in every step and for every choice.

use assay_models::TokenId;

/// Adds each bias to its token's score; ids are below the vocabulary size.
pub(super) fn apply(scores: &mut [f64], logit_bias: &[(TokenId, f64)]) {
    for &(token_id, bias) in logit_bias {
        scores[token_id as usize] += bias;
    }
}
