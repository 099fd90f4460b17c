//! What a caller asks of the engine.
//!
//! Every field has a range; [`Request::validate`] checks all of them against the model, so that
//! nothing past `submit` can fail of a bad value. Knows no wire format and no defaults.

use std::collections::BTreeSet;

use assay_constrain::Constraint;
use assay_models::{ModelInfo, TokenId};
use thiserror::Error;

use crate::output::ReplyFormat;
use crate::prefix_tree::CacheSalt;

/// Name of a request, unique in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// One prompt and how to continue it. `num_choices` sequences come of it, each with its own random stream.
#[derive(Clone, Debug)]
pub struct Request {
    /// Name in logs and events.
    pub id: RequestId,
    /// The prompt; never empty, each id below the vocabulary size.
    pub prompt_token_ids: Vec<TokenId>,
    /// Keeps the request's cached blocks to requests of the same salt; `None` shares with all without one.
    pub cache_salt: CacheSalt,
    /// Choices to generate, ≥ 1.
    pub num_choices: u32,
    /// Tokens to generate at most; prompt and reply together fit the context. 0 only scores the prompt: it takes
    /// `prompt_logprobs` and one choice.
    pub max_tokens: u32,
    /// How a token is drawn.
    pub sampling: SamplingParams,
    /// Scores to report; `None` reports none.
    pub logprobs: Option<LogprobsParams>,
    /// Scores of the prompt's own tokens to report; `None` reports none.
    pub prompt_logprobs: Option<PromptLogprobsParams>,
    /// Tokens whose raw scores ride with every scored token, whatever their rank: each below the vocabulary size, none
    /// twice, at most [`MAX_NAMED_TOKENS`].
    pub named_token_ids: Vec<TokenId>,
    /// What the reply must be; tokens outside it are never drawn. Raw scores do not see it.
    pub constraint: Option<Constraint>,
    /// How the reply is told apart. A constraint holds from the end of the reasoning on.
    pub format: ReplyFormat,
    /// Texts that end the reply; matched on the decoded content, never part of it.
    pub stop: Vec<String>,
    /// Ids that end the reply, the model's own end-of-generation set included.
    pub end_token_ids: Vec<TokenId>,
}

/// Sampling parameters, applied in the order of the fields; all arithmetic in f64 on the logits.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplingParams {
    /// Added to the named logits.
    pub logit_bias: Vec<(TokenId, f64)>,
    /// > 0; 1 is off. Divides positive and multiplies negative logits of tokens seen in prompt or reply.
    pub repetition_penalty: f64,
    /// −2..2; 0 is off. Subtracted once for each token already in the reply.
    pub presence_penalty: f64,
    /// −2..2; 0 is off. Subtracted per occurrence in the reply.
    pub frequency_penalty: f64,
    /// ≥ 0; 0 is greedy (ties by lower id).
    pub temperature: f64,
    /// Keep the k most likely; `None` keeps all.
    pub top_k: Option<u32>,
    /// (0, 1]; smallest set of most likely tokens whose mass reaches it.
    pub top_p: f64,
    /// [0, 1]; drop tokens less likely than this share of the most likely one.
    pub min_p: f64,
    /// Key of the counter-based RNG, together with choice index and position.
    pub seed: u64,
}

/// Which scores ride with each token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogprobsParams {
    /// Alternatives per token, 0..=20; min(k, vocabulary) are listed.
    pub top_logprobs: u32,
    /// Raw head distribution, or the one that was sampled from.
    pub mode: LogprobsMode,
    /// Also report the token that ended the reply.
    pub include_end: bool,
}

/// Which tokens of the prompt are scored. Their values are raw: no sampling parameter reaches them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromptLogprobsParams {
    /// The first scored token, by its index in the prompt: 1 up to its last token. Token 0 has no score: nothing
    /// stands before it. Tokens below may come from a cache; from here on every row is computed.
    pub first_position: u32,
    /// Alternatives per token, 0..=20; min(k, vocabulary) are listed.
    pub top_logprobs: u32,
}

/// Where reported values are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LogprobsMode {
    /// Log-softmax of the untouched row.
    #[default]
    Raw,
    /// Log-probability of the distribution that was sampled from.
    Processed,
}

impl SamplingParams {
    /// Greedy decoding: the most likely token, everything else off.
    pub fn greedy() -> Self {
        Self {
            logit_bias: Vec::new(),
            repetition_penalty: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            temperature: 0.0,
            top_k: None,
            top_p: 1.0,
            min_p: 0.0,
            seed: 0,
        }
    }
}

/// Alternatives that may be asked for per token.
pub const MAX_TOP_LOGPROBS: u32 = 20;

/// Tokens that may be named for their scores.
pub const MAX_NAMED_TOKENS: usize = 4_096;

/// A field of a [`Request`] outside its range.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field}: {reason}")]
pub struct InvalidRequest {
    /// Path of the field, such as `sampling.top_p`.
    pub field: &'static str,
    /// What is wrong with it.
    pub reason: String,
}

impl Request {
    /// Tokens that go through the model before anything is drawn. A prompt that is only scored needs no row of its
    /// last token: nothing follows it.
    pub(crate) fn tokens_to_prefill(&self) -> &[TokenId] {
        let num_unread = usize::from(self.max_tokens == 0);
        &self.prompt_token_ids[..self.prompt_token_ids.len() - num_unread]
    }

    /// Checks every field but the total length, which depends on the pool as well.
    ///
    /// # Errors
    /// The first field outside its documented range.
    pub fn validate(&self, model: &ModelInfo) -> Result<(), InvalidRequest> {
        let vocab_size = model.vocab_size;
        let past_vocab = |id: &TokenId| *id as usize >= vocab_size;
        let check = |holds: bool, field: &'static str, reason: &str| {
            holds.then_some(()).ok_or_else(|| InvalidRequest {
                field,
                reason: reason.to_owned(),
            })
        };
        check(
            !self.prompt_token_ids.is_empty(),
            "prompt_token_ids",
            "the prompt is empty",
        )?;
        if let Some(id) = self.prompt_token_ids.iter().find(|id| past_vocab(id)) {
            return Err(InvalidRequest {
                field: "prompt_token_ids",
                reason: format!("token {id} is not below the vocabulary size {vocab_size}"),
            });
        }
        check(self.num_choices >= 1, "num_choices", "at least 1")?;
        check(
            self.max_tokens >= 1 || self.prompt_logprobs.is_some(),
            "max_tokens",
            "at least 1, or 0 with prompt_logprobs",
        )?;
        check(
            self.max_tokens >= 1 || self.num_choices == 1,
            "num_choices",
            "1 where max_tokens is 0: there is only one prompt to score",
        )?;
        if let Some(params) = self.prompt_logprobs {
            check(
                (1..self.prompt_token_ids.len()).contains(&(params.first_position as usize)),
                "prompt_logprobs.first_position",
                "from 1 to the prompt's last token",
            )?;
            check(
                params.top_logprobs <= MAX_TOP_LOGPROBS,
                "prompt_logprobs.top_logprobs",
                "at most 20",
            )?;
        }
        check(
            self.stop.iter().all(|stop| !stop.is_empty()),
            "stop",
            "a stop string is empty",
        )?;
        if let Some(logprobs) = self.logprobs {
            check(
                logprobs.top_logprobs <= MAX_TOP_LOGPROBS,
                "logprobs.top_logprobs",
                "at most 20",
            )?;
        }
        let named = &self.named_token_ids;
        check(
            named.len() <= MAX_NAMED_TOKENS && !named.iter().any(past_vocab),
            "named_token_ids",
            "at most 4096 ids below the vocabulary size",
        )?;
        let distinct: BTreeSet<&TokenId> = named.iter().collect();
        check(
            distinct.len() == named.len(),
            "named_token_ids",
            "an id occurs twice",
        )?;
        check(
            named.is_empty()
                || self
                    .logprobs
                    .is_none_or(|params| params.mode == LogprobsMode::Raw),
            "named_token_ids",
            "only with raw scores",
        )?;

        if let Some(reasoning) = &self.format.reasoning {
            let tags = [&reasoning.open_token_ids, &reasoning.close_token_ids];
            check(
                tags.iter()
                    .all(|ids| !ids.is_empty() && !ids.iter().any(past_vocab)),
                "format.reasoning",
                "a tag has no token, or one past the vocabulary",
            )?;
        }

        let sampling = &self.sampling;
        if let Some((id, _)) = sampling.logit_bias.iter().find(|(id, _)| past_vocab(id)) {
            return Err(InvalidRequest {
                field: "sampling.logit_bias",
                reason: format!("token {id} is not below the vocabulary size {vocab_size}"),
            });
        }
        check(
            sampling.logit_bias.iter().all(|(_, bias)| bias.is_finite()),
            "sampling.logit_bias",
            "a bias is not finite",
        )?;
        check(
            sampling.repetition_penalty.is_finite() && sampling.repetition_penalty > 0.0,
            "sampling.repetition_penalty",
            "above 0 and finite",
        )?;
        check(
            (-2.0..=2.0).contains(&sampling.presence_penalty),
            "sampling.presence_penalty",
            "in -2..=2",
        )?;
        check(
            (-2.0..=2.0).contains(&sampling.frequency_penalty),
            "sampling.frequency_penalty",
            "in -2..=2",
        )?;
        check(
            sampling.temperature.is_finite() && sampling.temperature >= 0.0,
            "sampling.temperature",
            "at least 0 and finite",
        )?;
        check(sampling.top_k != Some(0), "sampling.top_k", "at least 1")?;
        check(
            sampling.top_p > 0.0 && sampling.top_p <= 1.0,
            "sampling.top_p",
            "above 0 and at most 1",
        )?;
        check(
            (0.0..=1.0).contains(&sampling.min_p),
            "sampling.min_p",
            "in 0..=1",
        )
    }
}
