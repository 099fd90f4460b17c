//! A receipt in the making: what the engine was asked and what it said, added read by read.

use assay_engine::decision::{LabelQuestion, LabelReading};
use assay_engine::{self as engine, Request};

use crate::hex_values::{Bits, HexBytes, Sha256Hex};
use crate::identity::Identity;
use crate::record::{Distribution, FORMAT, FinishReason, Label, Output, Reading, Receipt};
use crate::sampling::Sampling;

/// A token with the log-probability that is recorded of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecordedToken {
    /// The token.
    pub token_id: u32,
    /// Its log-probability.
    pub logprob: f64,
}

/// What names the reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyFacts {
    /// Route that was asked.
    pub route: &'static str,
    /// Of the request's body.
    pub request_sha256: Sha256Hex,
    /// Seconds since 1970.
    pub created: u64,
}

/// What was read and drawn for one reply so far.
#[derive(Debug, Default)]
pub struct Recording {
    /// Each with its whole prompt; what all share is found at the end.
    reads: Vec<(Vec<u32>, Output)>,
    end_token_ids: Vec<u32>,
    sampling: Option<Sampling>,
    distributions: Vec<Distribution>,
}

impl Recording {
    /// Adds the reading of one question's labels; its index among all reads.
    pub fn add_labels(&mut self, question: &LabelQuestion, reading: &LabelReading) -> usize {
        let labels = question.labels.iter().zip(&reading.labels);
        let labels = labels.map(|(token_ids, score)| Label {
            token_ids: token_ids.clone(),
            logprob_bits: score
                .steps
                .iter()
                .copied()
                .chain([score.end])
                .map(Bits::from)
                .collect(),
            joint_bits: score.joint.into(),
        });
        self.end_token_ids.clone_from(&question.end_token_ids);
        let output = Output::Labels {
            suffix_token_ids: Vec::new(),
            healed_bytes: HexBytes(question.healed_bytes.clone()),
            labels: labels.collect(),
            healed_logprob_bits: reading.healed_logprob.map(Bits::from),
            label_mass_bits: reading.label_mass.into(),
            leaving_mass_bits: reading.leaving_mass.into(),
        };
        self.add(question.prompt_token_ids.clone(), output)
    }

    /// Adds a distribution that was made of readings.
    pub fn add_distribution(&mut self, readings: Vec<Reading>, probabilities: &[f64]) {
        self.distributions.push(Distribution {
            readings,
            probability_bits: probabilities.iter().copied().map(Bits::from).collect(),
        });
    }

    /// Adds the scores of tokens that stood behind `prompt_token_ids`.
    pub fn add_scored(&mut self, prompt_token_ids: Vec<u32>, tokens: &[RecordedToken]) -> usize {
        let (token_ids, logprob_bits) = split(tokens);
        let output = Output::Scored {
            suffix_token_ids: Vec::new(),
            token_ids,
            logprob_bits,
        };
        self.add(prompt_token_ids, output)
    }

    /// Adds one choice of `request`, drawn to its end.
    pub fn add_drawn(
        &mut self,
        request: &Request,
        choice_index: u32,
        tokens: &[RecordedToken],
        reason: &engine::FinishReason,
    ) -> usize {
        let (token_ids, logprob_bits) = split(tokens);
        self.end_token_ids.clone_from(&request.end_token_ids);
        if self.sampling.is_none() {
            self.sampling = Some(Sampling::of(request));
        }
        let output = Output::Drawn {
            suffix_token_ids: Vec::new(),
            choice_index,
            max_tokens: request.max_tokens,
            token_ids,
            logprob_bits,
            finish_reason: FinishReason::of(reason),
        };
        self.add(request.prompt_token_ids.clone(), output)
    }

    fn add(&mut self, prompt_token_ids: Vec<u32>, output: Output) -> usize {
        self.reads.push((prompt_token_ids, output));
        self.reads.len() - 1
    }

    /// The receipt of all that was added.
    pub fn receipt(self, identity: &Identity, facts: ReplyFacts) -> Receipt {
        let prompts = self.reads.iter().map(|(prompt, _)| prompt.as_slice());
        let shared = shared_prefix(prompts).to_vec();
        let outputs = self.reads.into_iter().map(|(mut prompt, mut output)| {
            *output.suffix_mut() = prompt.split_off(shared.len());
            output
        });
        Receipt {
            format: FORMAT.to_owned(),
            assay_version: env!("CARGO_PKG_VERSION").to_owned(),
            numerics: identity.numerics.clone(),
            profile: identity.profile.clone(),
            kv: identity.kv.clone(),
            model: identity.model.clone(),
            tokenizer_sha256: identity.tokenizer_sha256.clone(),
            template_sha256: identity.template_sha256.clone(),
            prompt_format: identity.prompt_format.clone(),
            overrides: identity.overrides.clone(),
            system_fingerprint: identity.fingerprint(),
            route: facts.route.to_owned(),
            request_sha256: facts.request_sha256,
            outputs: outputs.collect(),
            prompt_token_ids: shared,
            end_token_ids: self.end_token_ids,
            sampling: self.sampling,
            distribution_bits: self.distributions,
            created: facts.created,
        }
    }
}

impl FinishReason {
    /// Of the engine's.
    pub fn of(reason: &engine::FinishReason) -> Self {
        match reason {
            engine::FinishReason::EndToken(_) => Self::EndToken,
            engine::FinishReason::StopString(_) => Self::StopString,
            engine::FinishReason::Length => Self::Length,
        }
    }
}

fn split(tokens: &[RecordedToken]) -> (Vec<u32>, Vec<Bits>) {
    let pairs = tokens
        .iter()
        .map(|token| (token.token_id, Bits::from(token.logprob)));
    pairs.unzip()
}

/// What all prompts begin with; nothing for none.
fn shared_prefix<'a>(mut prompts: impl Iterator<Item = &'a [u32]>) -> &'a [u32] {
    let first = prompts.next().unwrap_or_default();
    prompts.fold(first, |shared, prompt| {
        let num_shared = std::iter::zip(shared, prompt)
            .take_while(|(a, b)| a == b)
            .count();
        &shared[..num_shared]
    })
}
