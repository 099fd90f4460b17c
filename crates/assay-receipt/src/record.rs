//! The record itself: what answered, what it read, what it said of it. `docs/receipts.md` tells every member.

use serde::{Deserialize, Serialize};

use crate::hex_values::{Bits, HexBytes, Sha256Hex};
use crate::identity::{Identity, ModelFacts, Overrides};
use crate::sampling::Sampling;

/// Name and version of this form.
pub const FORMAT: &str = "assay-receipt-1";

/// All that it takes to compute a reply's numbers again, and the numbers. Sealed and opened by `seal.rs`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Receipt {
    /// Always [`FORMAT`].
    pub format: String,
    /// Version of the program that answered.
    pub assay_version: String,
    /// Version of the numerics contract.
    pub numerics: String,
    /// `exact` or `fast`.
    pub profile: String,
    /// Type of keys and values in the cache.
    pub kv: String,
    /// The model's file.
    pub model: ModelFacts,
    /// Of the tokenizer's definition.
    pub tokenizer_sha256: Sha256Hex,
    /// Of the chat template's text; null where the file has none.
    pub template_sha256: Option<Sha256Hex>,
    /// Name and version of the way that typed questions are put.
    pub prompt_format: String,
    /// What was set otherwise than the file says.
    pub overrides: Overrides,
    /// Short hash of all of the above that can change a bit.
    pub system_fingerprint: String,
    /// Route that was asked.
    pub route: String,
    /// Of the request's body, as it came.
    pub request_sha256: Sha256Hex,
    /// What the prompts of all outputs begin with; the whole prompt where there is one.
    pub prompt_token_ids: Vec<u32>,
    /// What ends a reply or a label.
    pub end_token_ids: Vec<u32>,
    /// How tokens were drawn; null where none was.
    pub sampling: Option<Sampling>,
    /// What was read and drawn.
    pub outputs: Vec<Output>,
    /// What the readings come to: one distribution for each question, in the order in which they were asked.
    pub distribution_bits: Vec<Distribution>,
    /// Seconds since 1970.
    pub created: u64,
}

/// What was read or drawn behind one prompt, which is `prompt_token_ids` with the suffix behind it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Output {
    /// Tokens that were given, scored one after the other.
    Scored {
        /// The prompt's own end.
        suffix_token_ids: Vec<u32>,
        /// The tokens.
        token_ids: Vec<u32>,
        /// `[num_tokens]` of each, given all before it.
        logprob_bits: Vec<Bits>,
    },
    /// Tokens that were drawn.
    Drawn {
        /// The prompt's own end.
        suffix_token_ids: Vec<u32>,
        /// Which choice of the prompt.
        choice_index: u32,
        /// Tokens that might be drawn at most.
        max_tokens: u32,
        /// The tokens, the one that ended the reply included.
        token_ids: Vec<u32>,
        /// `[num_tokens]` of each, read where `sampling.logprobs_mode` says.
        logprob_bits: Vec<Bits>,
        /// Why no more came.
        finish_reason: FinishReason,
    },
    /// Labels that were read for their probabilities.
    Labels {
        /// The prompt's own end.
        suffix_token_ids: Vec<u32>,
        /// Bytes of the prompt that the labels spell first, where a token would reach over its end.
        healed_bytes: HexBytes,
        /// The labels.
        labels: Vec<Label>,
        /// Of the healed bytes; null where there are none.
        healed_logprob_bits: Option<Bits>,
        /// Sum of the labels' probabilities.
        label_mass_bits: Bits,
        /// Probability of all else, summed by itself.
        leaving_mass_bits: Bits,
    },
}

/// One label's path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Label {
    /// Its tokens.
    pub token_ids: Vec<u32>,
    /// `[num_tokens + 1]` of each token, then of the end behind them.
    pub logprob_bits: Vec<Bits>,
    /// Of the label: their sum, less the healed bytes'.
    pub joint_bits: Bits,
}

/// A distribution over the labels of one question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Distribution {
    /// What it is made of: one reading, or one for each order of the options.
    pub readings: Vec<Reading>,
    /// `[num_labels]` in the order of the labels.
    pub probability_bits: Vec<Bits>,
}

/// A reading of a question's labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// Index in `outputs`.
    pub output: usize,
    /// The same of what it is divided by: the labels read without a state.
    pub prior: Option<usize>,
}

/// Why no more tokens came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The last one ends a reply.
    EndToken,
    /// The text came to a stop string.
    StopString,
    /// As many as might come.
    Length,
}

impl Receipt {
    /// Who answered, by its own account.
    pub fn identity(&self) -> Identity {
        Identity {
            numerics: self.numerics.clone(),
            profile: self.profile.clone(),
            kv: self.kv.clone(),
            model: self.model.clone(),
            tokenizer_sha256: self.tokenizer_sha256.clone(),
            template_sha256: self.template_sha256.clone(),
            prompt_format: self.prompt_format.clone(),
            overrides: self.overrides.clone(),
        }
    }
}

impl Output {
    /// The prompt's own end.
    pub fn suffix_token_ids(&self) -> &[u32] {
        match self {
            Self::Scored {
                suffix_token_ids, ..
            }
            | Self::Drawn {
                suffix_token_ids, ..
            }
            | Self::Labels {
                suffix_token_ids, ..
            } => suffix_token_ids,
        }
    }

    pub(crate) fn suffix_mut(&mut self) -> &mut Vec<u32> {
        match self {
            Self::Scored {
                suffix_token_ids, ..
            }
            | Self::Drawn {
                suffix_token_ids, ..
            }
            | Self::Labels {
                suffix_token_ids, ..
            } => suffix_token_ids,
        }
    }
}
