//! Two ways to take a model's habits out of a distribution: the order that options stand in, and what it says before it
//! has read anything. Pure; off unless asked for.

use super::distribution::probabilities;

/// The order of `num_options` options in rotation `rotation` of `num_rotations`: place `i` holds the option
/// `order[i]`. Rotation 0 is the caller's own order; the offsets are spread evenly, and all differ while there are no
/// more rotations than options.
///
/// # Panics
/// If `rotation` is not below `num_rotations`.
pub fn rotated_order(num_options: usize, rotation: usize, num_rotations: usize) -> Vec<usize> {
    assert!(rotation < num_rotations, "rotations are numbered from 0");
    let offset = rotation * num_options / num_rotations;
    (0..num_options)
        .map(|place| (place + offset) % num_options)
        .collect()
}

/// The renormalised geometric mean of one question's distributions under several orders: `logprobs[r][i]` is option
/// `i`'s joint in rotation `r`, options in the caller's order.
///
/// # Panics
/// If the rotations are none or differ in length.
pub fn geometric_mean(logprobs: &[Vec<f64>]) -> Vec<f64> {
    let first = logprobs.first().expect("at least one rotation");
    // A rotation's label mass scales all its options alike, so it falls out of the quotient.
    let means: Vec<f64> = (0..first.len())
        .map(|option| {
            let sum = logprobs.iter().fold(0.0, |sum, rotation| {
                assert_eq!(rotation.len(), first.len(), "rotations of one question");
                sum + rotation[option]
            });
            sum / logprobs.len() as f64
        })
        .collect();
    probabilities(&means)
}

/// The distribution of `logprobs` over the labels, each divided by its prior, renormalised: `prior_logprobs` are the
/// same labels' joints behind a prompt without content.
///
/// # Panics
/// If the two differ in length.
pub fn without_prior(logprobs: &[f64], prior_logprobs: &[f64]) -> Vec<f64> {
    assert_eq!(logprobs.len(), prior_logprobs.len(), "one prior a label");
    let pairs = logprobs.iter().zip(prior_logprobs);
    let ratios: Vec<f64> = pairs.map(|(logprob, prior)| logprob - prior).collect();
    probabilities(&ratios)
}
