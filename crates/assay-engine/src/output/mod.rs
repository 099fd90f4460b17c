//! What leaves the engine. A token and its scores are one value all the way.

pub mod format;
mod parser;
mod pieces;
mod stop;
pub mod text;
mod utf8;

pub use format::{
    Channel, ReasoningFormat, ReasoningTags, ReplyFormat, ToolCallFormat, ToolCallPiece,
};
pub(crate) use parser::ReasoningState;
pub use text::{Pushed, TextEnd, TextPipeline};

use assay_constrain::MatchError;
use assay_models::TokenId;

/// Scores of one generated token, over the whole vocabulary.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenLogprobs {
    /// Natural log of the token's probability.
    pub logprob: f64,
    /// The most likely tokens, most likely first, ties by lower id, each id once.
    pub top_logprobs: Vec<TopLogprob>,
    /// Scores of the tokens that the request names; `None` where it names none.
    pub named: Option<NamedLogprobs>,
}

/// Raw scores of the named tokens at one place.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedLogprobs {
    /// All of them, over the whole vocabulary, most likely first, ties by lower id.
    pub candidates: Vec<TopLogprob>,
    /// Natural log of their probabilities' sum. Taken from each candidate's, it leaves the distribution over the
    /// named tokens alone; with one candidate it is that one's value, to the bit.
    pub total_logprob: f64,
}

/// One alternative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TopLogprob {
    /// The alternative.
    pub token_id: TokenId,
    /// Natural log of its probability; the same bits as the chosen token's where they are the same token.
    pub logprob: f64,
}

/// A generated token with its scores.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenOutput {
    /// The token.
    pub token_id: TokenId,
    /// Its scores, where the request asked.
    pub logprobs: Option<TokenLogprobs>,
}

/// A token of the prompt with its scores, given the tokens before it.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptToken {
    /// Its index in the prompt, ≥ 1.
    pub position: u32,
    /// The token.
    pub token_id: TokenId,
    /// Its scores, raw.
    pub logprobs: TokenLogprobs,
    /// Place of the token among all of the vocabulary by probability, ties by lower id; 1 is the most likely.
    pub rank: u32,
}

/// A token output together with the text it spells in one channel.
///
/// A token that spells in two channels has an entry in each. The first has its scores; in the second it is certain,
/// given the first: its logprob is 0.0 and its lists are empty. Tokens that are all syntax have none.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The token and its scores.
    pub output: TokenOutput,
    /// Part of the reply that it stands in.
    pub channel: Channel,
    /// Whether the token's first entry stands in another channel.
    pub is_continuation: bool,
    /// Visible bytes of the token in this channel: its own raw bytes, cut where the channel or the reply ends inside it.
    pub bytes: Vec<u8>,
    /// Text that became complete with it; joined over the entries of a channel it is the channel's text.
    pub text: String,
    /// What became complete of tool calls with it; only in their channel.
    pub calls: Vec<ToolCallPiece>,
}

/// One event of a request, in order per choice.
#[derive(Clone, Debug, PartialEq)]
pub enum OutputEvent {
    /// Scored prompt tokens, where the request asked: as far as prefill has come, in order, each position once.
    /// All come before the first delta of choice 0, and before its end.
    Prompt {
        /// Never empty; the position after those of the event before.
        tokens: Vec<PromptToken>,
    },
    /// Released entries; their texts joined, channel by channel, are the text of this delta.
    Delta {
        /// Which choice.
        choice_index: u32,
        /// Never empty.
        entries: Vec<Entry>,
    },
    /// A choice ended; nothing follows for it.
    Finished {
        /// Which choice.
        choice_index: u32,
        /// Why.
        reason: FinishReason,
        /// Token that ended the reply, where `include_end` asked and a token did.
        end: Option<TokenOutput>,
        /// Exact counts of this choice.
        usage: Usage,
    },
    /// The request failed; nothing follows.
    Failed(RequestError),
}

/// Why a choice ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FinishReason {
    /// An end-of-generation token.
    EndToken(TokenId),
    /// A stop string, named.
    StopString(String),
    /// `max_tokens` or the context's end.
    Length,
}

/// Exact token counts of one choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Prompt tokens read from the prefix cache.
    pub cached_tokens: u32,
    /// Generated tokens, the ending one included.
    pub completion_tokens: u32,
    /// Those of them that came up to the end of the reasoning, its tags included.
    pub reasoning_tokens: u32,
}

/// A failure that belongs to one request.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RequestError {
    /// A NaN or infinity stood in the row.
    #[error("numerical error: a logits row held a non-finite value at position {position}")]
    NumericalError {
        /// Position of the token whose row it was; its successor was to be drawn.
        position: u32,
    },
    /// The request's constraint could not be followed further.
    #[error("constraint: {0}")]
    Constraint(#[from] MatchError),
    /// The engine stopped before the reply was complete.
    #[error("the engine stopped")]
    EngineStopped,
}

/// The receiver has gone; the engine frees the request's slot within one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

/// Where a request's events go. Never blocks.
pub trait OutputSink: Send {
    /// Hands over one event.
    ///
    /// # Errors
    /// [`Gone`] if nobody listens any more.
    fn send(&mut self, event: OutputEvent) -> Result<(), Gone>;

    /// A token was drawn, whether or not it spells anything: told of each, in order per choice, before the events that
    /// it brings.
    fn drawn(&mut self, _choice_index: u32, _output: &TokenOutput) {}

    /// Whether nobody listens any more; polled every step, also during prefill.
    fn is_gone(&self) -> bool;

    /// The first of the request's rows run in the step that begins now. Told once.
    fn scheduled(&mut self) {}
}
