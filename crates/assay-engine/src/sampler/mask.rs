//! A constraint's mask: what it leaves out cannot be drawn.

use assay_constrain::TokenMask;
use assay_models::TokenId;

/// Sets the score of every id outside `mask` to minus infinity, which no later stage can lift.
pub(super) fn apply(scores: &mut [f64], mask: &TokenMask) {
    for (token_id, score) in (0..).zip(scores) {
        if !mask.allows(token_id) {
            *score = f64::NEG_INFINITY;
        }
    }
}

/// The allowed ids below `vocab_size`, ascending.
pub(super) fn allowed_ids(vocab_size: usize, mask: &TokenMask) -> Vec<TokenId> {
    mask.iter()
        .take_while(|&token_id| (token_id as usize) < vocab_size)
        .collect()
}

/// Those of `token_ids` that `mask` allows, in the same order.
pub(super) fn retained(mut token_ids: Vec<TokenId>, mask: &TokenMask) -> Vec<TokenId> {
    token_ids.retain(|&token_id| mask.allows(token_id));
    token_ids
}
