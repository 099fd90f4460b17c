//! From log-probabilities to the distributions that replies hold. Pure; all sums in the caller's order.

use assay_kernels::exp64::exp64;

/// `EXP64(joint − max) / Σ`: the distribution over the labels alone.
///
/// Empty for no label. A joint of −infinity has probability 0; where all are, the result is not a number anywhere, so
/// callers refuse such a reading by its `label_mass` first.
pub fn probabilities(joint_logprobs: &[f64]) -> Vec<f64> {
    let most = joint_logprobs
        .iter()
        .copied()
        .fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = joint_logprobs
        .iter()
        .map(|joint| exp64(joint - most))
        .collect();
    let total = weights.iter().fold(0.0, |sum, weight| sum + weight);
    weights.into_iter().map(|weight| weight / total).collect()
}

/// Index of the largest probability; ties go to the lower index. `None` for no label.
pub fn mode(probabilities: &[f64]) -> Option<usize> {
    let indices = 0..probabilities.len();
    indices.reduce(|best, index| {
        if probabilities[index] > probabilities[best] {
            index
        } else {
            best
        }
    })
}

/// The System One confidence of a choice, `(max − 1/n) / (1 − 1/n)`; 1 for a single option.
pub fn choice_confidence(probabilities: &[f64]) -> f64 {
    let num_options = probabilities.len() as f64;
    if probabilities.len() < 2 {
        return 1.0;
    }
    let even = 1.0 / num_options;
    let most = probabilities.iter().copied().fold(0.0, f64::max);
    (most - even) / (1.0 - even)
}

/// The mean level of a score, `Σ p_i · i`, levels from 0.
pub fn score(probabilities: &[f64]) -> f64 {
    let levels = probabilities.iter().enumerate();
    levels.fold(0.0, |sum, (level, probability)| {
        sum + probability * level as f64
    })
}

/// The System One confidence of a score with mode k: `max(0, 1 − Σ p_i |i − k| / D)`, `D = (1/n) Σ |i − (n − 1)/2|`;
/// 1 for a single level.
pub fn score_confidence(probabilities: &[f64]) -> f64 {
    let num_levels = probabilities.len();
    let Some(mode) = mode(probabilities).filter(|_| num_levels > 1) else {
        return 1.0;
    };
    let middle = (num_levels - 1) as f64 / 2.0;
    let spread = (0..num_levels).fold(0.0, |sum, level| sum + (level as f64 - middle).abs());
    let spread = spread / num_levels as f64;
    let levels = probabilities.iter().enumerate();
    let distance = levels.fold(0.0, |sum, (level, probability)| {
        sum + probability * level.abs_diff(mode) as f64
    });
    (1.0 - distance / spread).max(0.0)
}
