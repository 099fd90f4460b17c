//! Temperature: every score divided by it.

/// Divides; `temperature` is above 0.
pub(super) fn apply(scores: &mut [f64], temperature: f64) {
    if temperature != 1.0 {
        for score in scores {
            *score /= temperature;
        }
    }
}
