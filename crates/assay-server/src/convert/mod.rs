//! The only place where wire types and engine types meet.

pub(crate) mod chat;
pub(crate) mod completion;
pub(crate) mod completion_prompt;
pub(crate) mod completion_request;
pub(crate) mod constraint;
pub(crate) mod decisions;
pub(crate) mod legacy_logprobs;
pub(crate) mod logprob_entries;
pub(crate) mod messages;
pub(crate) mod parsers;
pub(crate) mod prompt_logprobs;
pub(crate) mod reply_shape;
pub(crate) mod request;
pub(crate) mod responses;
pub(crate) mod score;
pub(crate) mod tool_calls;
pub(crate) mod tool_shapes;
pub(crate) mod usage;
