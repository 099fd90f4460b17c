//! Top-p: keep the smallest set of most likely tokens whose mass reaches a share of the whole.

use assay_models::TokenId;

use super::distribution::Candidate;

/// Lower edges of the weight bands that are sorted one after the other (2^−6, 2^−12, 2^−20, 0; the
/// best weight is 1). The set is nearly always inside the first, so the whole vocabulary need not be
/// sorted; the outcome is that of a full sort, since every weight of a band is above the next.
const BAND_EDGES: [f64; 4] = [1.0 / 64.0, 1.0 / 4096.0, 1.0 / 1_048_576.0, 0.0];

/// Keeps the smallest prefix of `candidates`, by descending weight and ties by lower id, whose
/// weights summed in that order reach `top_p` of `total`.
pub(super) fn retain(candidates: &mut Vec<Candidate>, top_p: f64, total: f64) {
    let target = top_p * total;
    if let Some((weight, token_id)) = last_kept(candidates, target) {
        candidates.retain(|candidate| {
            candidate.weight > weight
                || (candidate.weight == weight && candidate.token_id <= token_id)
        });
    }
}

/// The least likely token that is still kept; `None` keeps all.
fn last_kept(candidates: &[Candidate], target: f64) -> Option<(f64, TokenId)> {
    let mut cumulative = 0.0;
    let mut upper_edge = f64::INFINITY;
    let mut band: Vec<Candidate> = Vec::new();
    for lower_edge in BAND_EDGES {
        band.clear();
        band.extend(
            candidates.iter().filter(|candidate| {
                candidate.weight >= lower_edge && candidate.weight < upper_edge
            }),
        );
        band.sort_unstable_by(|a, b| {
            b.weight
                .total_cmp(&a.weight)
                .then(a.token_id.cmp(&b.token_id))
        });
        for candidate in &band {
            cumulative += candidate.weight;
            if cumulative >= target {
                return Some((candidate.weight, candidate.token_id));
            }
        }
        upper_edge = lower_edge;
    }
    None
}
