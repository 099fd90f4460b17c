//! What a caller asks: prompts and the labels that may follow each.

use assay_models::TokenId;
use thiserror::Error;

use super::reading::DecisionReading;
use crate::handle::SubmitError;
use crate::output::RequestError;
use crate::prefix_tree::CacheSalt;

/// Tokens of one label at most.
pub const MAX_LABEL_TOKENS: usize = 64;

/// Edges of one request's label tries where the caller sets no other limit.
pub const DEFAULT_MAX_TRIE_EDGES: usize = 65_536;

/// Questions that are read together. Leading tokens that their prompts share go through the model once, and so does
/// every edge of their label tries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecisionRequest {
    /// At least one; answers keep their order.
    pub questions: Vec<LabelQuestion>,
    /// Keeps the request's cached blocks to requests of the same salt; `None` shares with all without one.
    pub cache_salt: CacheSalt,
    /// Distinct label edges of all questions at most, those that heal a boundary included.
    pub max_trie_edges: usize,
}

/// One prompt, and the labels whose probabilities behind it are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelQuestion {
    /// Never empty, each id below the vocabulary size.
    pub prompt_token_ids: Vec<TokenId>,
    /// Token paths behind the prompt, at least one, each of 1 to [`MAX_LABEL_TOKENS`] ids; no two alike, and none
    /// holds an id of `end_token_ids`, so that no label is the start of another with its end.
    pub labels: Vec<Vec<TokenId>>,
    /// What ends a label: a set, ascending, never empty. P(end) is the sum over it.
    pub end_token_ids: Vec<TokenId>,
    /// Bytes of the prompt's text that stand behind `prompt_token_ids`, because a label's first token reaches back over
    /// them; every label's path spells them first. Probabilities are then given that the model writes these bytes,
    /// however it cuts them into tokens. Empty where prompt and labels part at a token's border.
    pub healed_bytes: Vec<u8>,
}

/// Why a decision was not taken. None of it has an effect.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DecideError {
    /// The request asks for something that cannot be read.
    #[error(transparent)]
    Invalid(#[from] InvalidDecision),
    /// The engine takes none now.
    #[error(transparent)]
    Submit(#[from] SubmitError),
}

/// A value of a [`DecisionRequest`] outside its range.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidDecision {
    /// There is nothing to answer.
    #[error("questions: at least one")]
    NoQuestions,
    /// The prompt has no token.
    #[error("questions[{question}].prompt_token_ids: the prompt is empty")]
    EmptyPrompt {
        /// Index of the question.
        question: usize,
    },
    /// A prompt or terminator id that the model does not have.
    #[error(
        "questions[{question}]: token {token_id} is not below the vocabulary size {vocab_size}"
    )]
    UnknownToken {
        /// Index of the question.
        question: usize,
        /// The id.
        token_id: TokenId,
        /// Ids of the model.
        vocab_size: usize,
    },
    /// No label, or no terminator, or the terminators are not ascending.
    #[error("questions[{question}]: at least one label and one end token, end tokens ascending")]
    NoLabels {
        /// Index of the question.
        question: usize,
    },
    /// One label cannot be read.
    #[error("questions[{question}].labels[{label}]: {fault}")]
    Label {
        /// Index of the question.
        question: usize,
        /// Index of the label.
        label: usize,
        /// What is wrong with it.
        fault: LabelFault,
    },
    /// Its prompt shares not even its first token with the others', so nothing is gained by one request.
    #[error(
        "questions[{question}].prompt_token_ids: it begins unlike the others; ask it in a request of its own"
    )]
    NothingShared {
        /// Index of the question.
        question: usize,
    },
    /// The longest prompt with its label passes what one sequence can hold, or the KV pool cannot hold one path of
    /// the request with the copies that it forks from.
    #[error(
        "questions: a prompt and label of {num_tokens} tokens pass the limit of {limit_tokens}"
    )]
    TooLong {
        /// Tokens of the longest path.
        num_tokens: usize,
        /// The context, or what the KV pool has room for where that is smaller.
        limit_tokens: usize,
    },
    /// More label edges than the request may have.
    #[error(
        "the labels make {edges} trie edges or more; at most {limit}: ask for fewer or shorter labels"
    )]
    TooManyEdges {
        /// Edges counted; counting stops soon after the limit.
        edges: usize,
        /// `max_trie_edges`.
        limit: usize,
    },
}

/// What is wrong with a label.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LabelFault {
    /// It has no token.
    #[error("the label is empty")]
    Empty,
    /// It has more than [`MAX_LABEL_TOKENS`].
    #[error("{num_tokens} tokens; a label has at most 64")]
    TooManyTokens {
        /// How many.
        num_tokens: usize,
    },
    /// An id that the model does not have.
    #[error("token {0} is not below the vocabulary size")]
    UnknownToken(TokenId),
    /// Two labels of one path cannot be told apart.
    #[error("the same token path as labels[{0}]")]
    SameAs(usize),
    /// It holds a token that ends labels, so it would end there.
    #[error("token {0} ends a label and cannot stand inside one")]
    HoldsEnd(TokenId),
    /// It does not spell the bytes that were taken back from the prompt.
    #[error("it does not begin with the healed bytes")]
    NotHealed,
}

/// Where a decision's outcome goes. Never blocks.
pub trait DecisionSink: Send {
    /// Hands over the outcome, once. Nobody listening any more is no error: there is nothing left to free.
    fn send(&mut self, outcome: Result<DecisionReading, RequestError>);

    /// Whether nobody listens any more; polled every step. The decision's place and blocks are free within one.
    fn is_gone(&self) -> bool;
}
