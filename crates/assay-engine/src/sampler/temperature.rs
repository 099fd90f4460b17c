//! Temperature: every score divided by it.

/// One score divided; `temperature` is above 0.
pub(super) fn divided(score: f64, temperature: f64) -> f64 {
    if temperature == 1.0 {
        score
    } else {
        score / temperature
    }
}

/// Divides all of them.
pub(super) fn apply(scores: &mut [f64], temperature: f64) {
    if temperature != 1.0 {
        for score in scores {
            *score = divided(*score, temperature);
        }
    }
}
