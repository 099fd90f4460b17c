//! Typed decisions: how likely each of a question's labels is, read from the model and never sampled.
//!
//! A label is its whole token path and a terminator behind it. All prompts and paths of a request make one token tree;
//! each of its edges goes through the model once, packed into the same passes as everyone's tokens, and each row that
//! matters is read for the labels that pass it. So a reading has the bits that each path alone would give
//! (`docs/decisions.md` says what the numbers mean).
//!
//! [`LabelQuestion`] in, [`LabelReading`] out, through [`EngineHandle::decide`](crate::EngineHandle::decide).
//! [`tokenize_labels`] makes a question of a prompt's text; [`distribution`] and [`debias`] are what callers do with the
//! readings, as pure functions. Nothing here knows a wire format, a template or a JSON type.

pub(crate) mod active;
mod assemble;
mod codes;
pub mod debias;
pub mod distribution;
mod ends;
mod healing;
mod labels;
pub(crate) mod plan;
pub(crate) mod read;
mod reading;
mod request;
mod stage;
mod tree;
mod trie;

pub use codes::code_labels;
pub use ends::{Ending, end_token_ids};
pub use labels::{LabelError, LabelPrompt, tokenize_labels};
pub use reading::{DecisionReading, LabelReading, LabelScore};
pub use request::{
    DEFAULT_MAX_TRIE_EDGES, DecideError, DecisionRequest, DecisionSink, InvalidDecision,
    LabelFault, LabelQuestion, MAX_LABEL_TOKENS,
};
