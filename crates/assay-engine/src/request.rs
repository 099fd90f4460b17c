//! What a caller asks of the engine, already validated against the model's limits.

use assay_models::TokenId;

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
    /// Choices to generate, ≥ 1.
    pub num_choices: u32,
    /// Tokens to generate at most, ≥ 1; prompt and reply together fit the context.
    pub max_tokens: u32,
    /// How a token is drawn.
    pub sampling: SamplingParams,
    /// Scores to report; `None` reports none.
    pub logprobs: Option<LogprobsParams>,
    /// Texts that end the reply; matched on the decoded text, never part of it.
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

/// Where reported values are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LogprobsMode {
    /// Log-softmax of the untouched row.
    #[default]
    Raw,
    /// Log-probability of the distribution that was sampled from.
    Processed,
}
