//! Min-p: drop tokens less likely than a share of the most likely one.

use super::distribution::Candidate;

/// Keeps candidates whose weight is at least `min_p` of the largest.
pub(super) fn retain(candidates: &mut Vec<Candidate>, min_p: f64) {
    let largest = candidates
        .iter()
        .fold(0.0_f64, |largest, candidate| largest.max(candidate.weight));
    let threshold = min_p * largest;
    candidates.retain(|candidate| candidate.weight >= threshold);
}
