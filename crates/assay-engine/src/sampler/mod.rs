//! How a token is drawn from a row of logits, in f64 and in a fixed order: mask, bias, penalties,
//! temperature, top-k, top-p, min-p, one uniform number, inverse CDF over ascending ids.
//!
//! Reads a row and leaves it untouched: log-probabilities were taken before. Knows no model and no
//! client. The random number depends on seed, choice and position alone (`rng.rs`).

mod bias;
mod distribution;
mod mask;
mod min_p;
mod penalties;
pub mod rng;
mod temperature;
mod top_k;
mod top_p;

pub use distribution::Distribution;
pub use penalties::SeenTokens;

use assay_constrain::TokenMask;
use assay_kernels::Compute;
use assay_models::TokenId;

use crate::request::SamplingParams;

/// Whose draw it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrawKey {
    /// The request's seed.
    pub seed: u64,
    /// Which choice.
    pub choice_index: u32,
    /// Index of the drawn token in its sequence, prompt included.
    pub position: u32,
}

/// Draws one token; `row` is finite, and `mask` allows at least one of its ids.
pub fn draw(
    compute: &Compute,
    row: &[f32],
    mask: Option<&TokenMask>,
    params: &SamplingParams,
    seen: &SeenTokens,
    key: DrawKey,
) -> TokenId {
    if takes_most_likely(params) {
        // f32 to f64 keeps order and ties.
        return distribution::argmax(row, mask);
    }
    draw_from(&distribution(compute, row, mask, params, seen), key)
}

/// Whether the most likely id that is allowed is drawn, ties by lower id, whatever the key.
pub fn takes_most_likely(params: &SamplingParams) -> bool {
    params.temperature == 0.0 && params.logit_bias.is_empty() && !penalties::are_on(params)
}

/// Draws one token from a distribution that [`distribution()`] built.
pub fn draw_from(distribution: &Distribution, key: DrawKey) -> TokenId {
    let position = u64::from(key.position);
    distribution.draw(rng::uniform(key.seed, key.choice_index, position))
}

/// The distribution that `params` make of `row`; `row` is finite, and `mask` allows at least one of its ids.
///
/// What the mask leaves out has no mass, whatever its bias.
///
/// Greedy is all mass on the best score. So is a temperature that would drive the best score to
/// infinity, such as 1e−307: the order that division keeps decides, not the infinities it makes.
pub fn distribution(
    compute: &Compute,
    row: &[f32],
    mask: Option<&TokenMask>,
    params: &SamplingParams,
    seen: &SeenTokens,
) -> Distribution {
    let mut scores: Vec<f64> = row.iter().map(|&logit| f64::from(logit)).collect();
    if let Some(mask) = mask {
        mask::apply(&mut scores, mask);
    }
    bias::apply(&mut scores, &params.logit_bias);
    if penalties::are_on(params) {
        penalties::apply(&mut scores, params, seen);
    }
    if params.temperature == 0.0 {
        return Distribution::point_mass(scores, mask);
    }
    let best_score = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let max_score = temperature::divided(best_score, params.temperature);
    if !max_score.is_finite() {
        return Distribution::point_mass(scores, mask);
    }
    temperature::apply(&mut scores, params.temperature);

    let kept_by_top_k = params
        .top_k
        .map(|k| k as usize)
        .filter(|&k| k < scores.len())
        .map(|k| top_k::select(&scores, k));
    let kept = match (kept_by_top_k, mask) {
        (Some(kept), Some(mask)) => Some(mask::retained(kept, mask)),
        (Some(kept), None) => Some(kept),
        (None, Some(mask)) => Some(mask::allowed_ids(scores.len(), mask)),
        (None, None) => None,
    };
    let mut distribution = match kept {
        Some(kept) => Distribution::softmax_of(compute, scores, max_score, &kept),
        None => Distribution::softmax(compute, scores, max_score),
    };
    if params.top_p < 1.0 {
        let total = distribution.total();
        top_p::retain(&mut distribution.candidates, params.top_p, total);
    }
    if params.min_p > 0.0 {
        min_p::retain(&mut distribution.candidates, params.min_p);
    }
    distribution
}

/// Whether a request's draws depend on which tokens were seen.
pub fn needs_seen_tokens(params: &SamplingParams) -> bool {
    penalties::are_on(params)
}
