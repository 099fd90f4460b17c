//! Token counts of a decision.

use assay_api::decisions::openai::{DecisionUsage, InputTokensDetails, OutputTokensDetails};
use assay_api::decisions::systemone::SystemOneUsage;
use assay_engine::decision::DecisionReading;

/// What one or several rounds read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    prompt_tokens: u64,
    cached_tokens: u64,
    label_tokens: u64,
}

impl Counts {
    pub(crate) fn of(read: &DecisionReading) -> Self {
        Self {
            prompt_tokens: u64::from(read.prompt_tokens),
            cached_tokens: u64::from(read.cached_tokens),
            label_tokens: u64::from(read.trie_edges),
        }
    }

    /// Adds a further round.
    pub(crate) fn add(&mut self, more: Self) {
        self.prompt_tokens += more.prompt_tokens;
        self.cached_tokens += more.cached_tokens;
        self.label_tokens += more.label_tokens;
    }

    pub(crate) fn openai(self) -> DecisionUsage {
        DecisionUsage {
            input_tokens: self.prompt_tokens,
            input_tokens_details: InputTokensDetails {
                cache_write_tokens: 0,
                cached_tokens: self.cached_tokens,
            },
            output_tokens: self.label_tokens,
            output_tokens_details: OutputTokensDetails::default(),
            total_tokens: self.prompt_tokens + self.label_tokens,
        }
    }

    pub(crate) fn system_one(self) -> SystemOneUsage {
        SystemOneUsage {
            input_tokens: self.prompt_tokens,
            output_tokens: self.label_tokens,
            x_cached_tokens: self.cached_tokens,
        }
    }
}
