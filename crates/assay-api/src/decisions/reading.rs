//! What was read for one question, and the figures that every dialect derives from it in the same way.

use serde::Serialize;

/// The distribution over a question's answers, in the caller's order.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Probability of each answer among the answers; sums to 1.
    pub probabilities: Vec<f64>,
    /// The same before rotations and prior, where they were asked for.
    pub raw_probabilities: Option<Vec<f64>>,
    /// Sum of the answers' probabilities over everything that the model could have said.
    pub label_mass: f64,
    /// Whether `label_mass` is below what was asked for.
    pub is_refused: bool,
    /// How the labels join the prompt.
    pub boundary: Boundary,
    /// Where they were asked for.
    pub diagnostics: Option<Diagnostics>,
}

/// How labels join the prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Boundary {
    /// The prompt's tokens stand before every label.
    Exact,
    /// The prompt's last tokens depend on the label: they were read with it, and divided out.
    Healed,
}

/// How a reading came about.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diagnostics {
    /// In the caller's order.
    pub labels: Vec<LabelPath>,
    /// As in the answer.
    pub label_mass: f64,
    /// Whether the model's most likely next words are one of the labels: the likeliest first token begins the
    /// likeliest label.
    pub argmax_is_label: bool,
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Of these, from the prefix cache.
    pub cached_tokens: u32,
    /// Distinct edges of the labels' token tree.
    pub trie_edges: u32,
}

/// One label as it was read.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LabelPath {
    /// Its words.
    pub label: String,
    /// Its tokens, without the end.
    pub token_ids: Vec<u32>,
    /// Log-probability of each token after all before it, and last that of the end.
    pub logprobs: Vec<f64>,
    /// Their sum, in order.
    pub logprob: f64,
}

impl Reading {
    /// Index of the most likely answer; ties go to the first.
    pub fn argmax(&self) -> usize {
        let mut best = 0;
        for (index, probability) in self.probabilities.iter().enumerate() {
            if *probability > self.probabilities[best] {
                best = index;
            }
        }
        best
    }

    /// How far the most likely answer is above an even guess: 0 at even, 1 at certainty.
    pub fn choice_confidence(&self) -> f64 {
        let even = 1.0 / count(self.probabilities.len());
        let most = self.probabilities.get(self.argmax()).copied().unwrap_or(1.0);
        ((most - even) / (1.0 - even)).clamp(0.0, 1.0)
    }

    /// Sum of each level times its probability.
    pub fn score(&self) -> f64 {
        let levels = self.probabilities.iter().enumerate();
        levels.map(|(level, p)| p * count(level)).sum()
    }

    /// How close the levels' mass lies to the most likely level, beside an even spread: 0 at even or wider, 1 at
    /// certainty.
    pub fn score_confidence(&self) -> f64 {
        let num_levels = count(self.probabilities.len());
        let (mode, centre) = (count(self.argmax()), (num_levels - 1.0) / 2.0);
        let (mut spread, mut even_spread) = (0.0, 0.0);
        for (level, p) in self.probabilities.iter().enumerate() {
            spread += p * (count(level) - mode).abs();
            even_spread += (count(level) - centre).abs();
        }
        (1.0 - spread / (even_spread / num_levels)).clamp(0.0, 1.0)
    }
}

/// Counts of answers stay far below 2^53.
fn count(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(probabilities: &[f64]) -> Reading {
        Reading {
            probabilities: probabilities.to_vec(),
            raw_probabilities: None,
            label_mass: 1.0,
            is_refused: false,
            boundary: Boundary::Exact,
            diagnostics: None,
        }
    }

    #[test]
    fn d4_confidence_follows_the_formula() {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        near(reading(&[0.5, 0.5]).choice_confidence(), 0.0);
        near(reading(&[0.0, 1.0]).choice_confidence(), 1.0);
        // (0.7 - 1/3) / (2/3)
        near(reading(&[0.7, 0.2, 0.1]).choice_confidence(), 0.55);
        near(reading(&[1.0, 0.0, 0.0]).score_confidence(), 1.0);
        near(reading(&[1.0 / 3.0; 3]).score_confidence(), 0.0);
        // Mode 2: spread 0.2 * 2 + 0.3 = 0.7 beside an even 2/3.
        near(reading(&[0.2, 0.3, 0.5]).score_confidence(), 0.0);
        // Mode 1: spread 0.1 + 0.1 = 0.2; 1 - 0.3.
        near(reading(&[0.1, 0.8, 0.1]).score_confidence(), 0.7);
        near(reading(&[0.2, 0.3, 0.5]).score(), 1.3);
    }

    #[test]
    fn d4_ties_go_to_the_first() {
        assert_eq!(reading(&[0.2, 0.4, 0.4]).argmax(), 1);
        // The mode is level 0: spread 0.5 * 1 beside an even 0.5.
        assert_eq!(reading(&[0.5, 0.5]).score_confidence(), 0.0);
    }
}
