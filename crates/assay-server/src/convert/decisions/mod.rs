//! Typed questions to label questions of the engine, and its readings to distributions. `prompt.rs` and `wording.rs`
//! are the prompt format: what they write may only change together with its name.

pub(crate) mod openai;
pub(crate) mod plan;
pub(crate) mod prior_cache;
pub(crate) mod prompt;
pub(crate) mod schema;
pub(crate) mod systemone;
pub(crate) mod usage;
mod wording;
