//! The distribution a token is drawn from: scores after bias, penalties and temperature, and the
//! candidates that top-k, top-p and min-p left.

use assay_constrain::TokenMask;
use assay_kernels::Compute;
use assay_kernels::exp64::{exp64_slice, ln64};
use assay_models::TokenId;

use crate::output::TopLogprob;

use super::top_k;

/// A token that can be drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Candidate {
    pub(super) token_id: TokenId,
    /// exp(score − best score): the probability up to the common factor.
    pub(super) weight: f64,
}

/// What one token is drawn from.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// `[vocab_size]` scores after bias, penalties and temperature.
    pub(super) scores: Vec<f64>,
    /// Best score.
    pub(super) max_score: f64,
    /// What can be drawn, ascending by id; never empty.
    pub(super) candidates: Vec<Candidate>,
}

impl Distribution {
    /// All the mass on the best score that `mask` allows, ties by lower id.
    pub(super) fn point_mass(scores: Vec<f64>, mask: Option<&TokenMask>) -> Self {
        let token_id = argmax(&scores, mask);
        Self {
            max_score: scores[token_id as usize],
            scores,
            candidates: vec![Candidate {
                token_id,
                weight: 1.0,
            }],
        }
    }

    /// Softmax over all scores, of which `max_score` is the best and finite.
    pub(super) fn softmax(compute: &Compute, scores: Vec<f64>, max_score: f64) -> Self {
        let weights = weights(compute, scores.iter().copied(), max_score);
        let candidates = (0..)
            .zip(weights)
            .map(|(token_id, weight)| Candidate { token_id, weight })
            .collect();
        Self {
            scores,
            max_score,
            candidates,
        }
    }

    /// Softmax over the scores of `token_ids` alone, ascending; `max_score` is among them and finite.
    pub(super) fn softmax_of(
        compute: &Compute,
        scores: Vec<f64>,
        max_score: f64,
        token_ids: &[TokenId],
    ) -> Self {
        let kept = token_ids.iter().map(|&id| scores[id as usize]);
        let weights = weights(compute, kept, max_score);
        let candidates = token_ids
            .iter()
            .zip(weights)
            .map(|(&token_id, weight)| Candidate { token_id, weight })
            .collect();
        Self {
            scores,
            max_score,
            candidates,
        }
    }

    /// Sum of the weights, ascending by id.
    pub(super) fn total(&self) -> f64 {
        self.candidates
            .iter()
            .fold(0.0, |total, candidate| total + candidate.weight)
    }

    /// The token at `uniform` (in [0, 1)) of the cumulative distribution over ascending ids.
    pub fn draw(&self, uniform: f64) -> TokenId {
        let target = uniform * self.total();
        let mut cumulative = 0.0;
        let mut drawn = 0;
        for candidate in &self.candidates {
            if candidate.weight > 0.0 {
                drawn = candidate.token_id;
            }
            cumulative += candidate.weight;
            if cumulative > target {
                break;
            }
        }
        drawn
    }

    /// Log-probability of `token_id` here; minus infinity where it cannot be drawn.
    pub fn logprob(&self, token_id: TokenId) -> f64 {
        let is_candidate = self
            .candidates
            .binary_search_by_key(&token_id, |candidate| candidate.token_id)
            .is_ok();
        if is_candidate {
            self.candidate_logprob(token_id, ln64(self.total()))
        } else {
            f64::NEG_INFINITY
        }
    }

    /// The `k` most likely tokens (all, if there are fewer), most likely first, ties by lower id.
    /// Tokens that cannot be drawn follow with minus infinity, by id.
    pub fn top_logprobs(&self, k: usize) -> Vec<TopLogprob> {
        let mut reachable = vec![f64::NEG_INFINITY; self.scores.len()];
        let ln_total = ln64(self.total());
        for candidate in &self.candidates {
            reachable[candidate.token_id as usize] =
                self.candidate_logprob(candidate.token_id, ln_total);
        }
        top_k::ranked(&reachable, k)
            .into_iter()
            .map(|token_id| TopLogprob {
                token_id,
                logprob: reachable[token_id as usize],
            })
            .collect()
    }

    fn candidate_logprob(&self, token_id: TokenId, ln_total: f64) -> f64 {
        if self.candidates.len() == 1 {
            // Certain, also where its score is not finite.
            return 0.0;
        }
        self.scores[token_id as usize] - self.max_score - ln_total
    }
}

/// exp(score − `max_score`) of each score.
fn weights(compute: &Compute, scores: impl Iterator<Item = f64>, max_score: f64) -> Vec<f64> {
    let mut weights: Vec<f64> = scores.map(|score| score - max_score).collect();
    exp64_slice(compute, &mut weights);
    weights
}

/// Index of the largest value that `mask` allows, ties by lower index; no value is NaN.
pub(super) fn argmax<T: PartialOrd + Copy>(values: &[T], mask: Option<&TokenMask>) -> TokenId {
    let mut best: Option<(TokenId, T)> = None;
    for (token_id, &value) in (0..).zip(values) {
        let is_allowed = mask.is_none_or(|mask| mask.allows(token_id));
        if is_allowed && best.is_none_or(|(_, best_value)| value > best_value) {
            best = Some((token_id, value));
        }
    }
    best.map_or(0, |(token_id, _)| token_id)
}
