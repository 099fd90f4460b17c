//! Top-k: keep the k best scores, ties by lower id.

use std::cmp::Ordering;

use assay_models::TokenId;

/// Ids of the `k` best of `scores`, ascending by id. One pass with a buffer of 2k.
pub(super) fn select(scores: &[f64], k: usize) -> Vec<TokenId> {
    let mut best = best_of(scores, k);
    best.sort_unstable_by_key(|ranked| ranked.token_id);
    best.into_iter().map(|ranked| ranked.token_id).collect()
}

/// Ids of the `k` best of `scores`, best first.
pub(super) fn ranked(scores: &[f64], k: usize) -> Vec<TokenId> {
    let mut best = best_of(scores, k);
    best.sort_unstable_by(better_first);
    best.into_iter().map(|ranked| ranked.token_id).collect()
}

#[derive(Clone, Copy)]
struct Ranked {
    score: f64,
    token_id: TokenId,
}

/// Larger score, then smaller id. Scores are never NaN here.
fn better_first(a: &Ranked, b: &Ranked) -> Ordering {
    b.score
        .partial_cmp(&a.score)
        .unwrap_or(Ordering::Equal)
        .then(a.token_id.cmp(&b.token_id))
}

fn best_of(scores: &[f64], k: usize) -> Vec<Ranked> {
    if k == 0 {
        return Vec::new();
    }
    let mut best: Vec<Ranked> = Vec::with_capacity(k.saturating_mul(2).min(scores.len()));
    let mut worst_kept: Option<f64> = None;
    for (token_id, &score) in (0..).zip(scores) {
        // Ids ascend, so a tie with the worst of k kept tokens loses.
        if worst_kept.is_some_and(|worst| score <= worst) {
            continue;
        }
        best.push(Ranked { score, token_id });
        if best.len() == k.saturating_mul(2) {
            best.select_nth_unstable_by(k - 1, better_first);
            best.truncate(k);
            worst_kept = Some(best[k - 1].score);
        }
    }
    if best.len() > k {
        best.select_nth_unstable_by(k - 1, better_first);
        best.truncate(k);
    }
    best
}
