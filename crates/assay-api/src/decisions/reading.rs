//! What was read for one question; every dialect writes the same figures.

use schemars::JsonSchema;
use serde::Serialize;

/// The distribution over a question's answers, in the caller's order.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Probability of each answer among the answers; sums to 1.
    pub probabilities: Vec<f64>,
    /// The same before rotations and prior, where they were asked for.
    pub raw_probabilities: Option<Vec<f64>>,
    /// Index of the most likely answer; ties go to the first.
    pub mode: usize,
    /// 0 at an even guess, 1 at certainty; of a score, how close its mass lies to the mode.
    pub confidence: f64,
    /// Sum of each answer's index times its probability.
    pub score: f64,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Boundary {
    /// The prompt's tokens stand before every label.
    Exact,
    /// The prompt's last tokens depend on the label: they were read with it, and divided out.
    Healed,
}

/// How a reading came about.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Diagnostics {
    /// In the caller's order.
    pub labels: Vec<LabelPath>,
    /// As in the answer.
    pub label_mass: f64,
    /// Whether greedy decoding would have answered with one of the labels and ended.
    pub argmax_is_label: bool,
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Of these, from the prefix cache.
    pub cached_tokens: u32,
    /// Distinct edges of the labels' token tree.
    pub trie_edges: u32,
}

/// One label as it was read.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LabelPath {
    /// Its words.
    pub label: String,
    /// Its tokens, without the end.
    pub token_ids: Vec<u32>,
    /// What each of them spells, as alternatives are written.
    pub tokens: Vec<String>,
    /// Log-probability of each token after all before it, and last that of the end.
    pub logprobs: Vec<f64>,
    /// Their sum, in order.
    pub logprob: f64,
}
