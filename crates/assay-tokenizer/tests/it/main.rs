//! Tests against vocabularies, templates and recorded results of other implementations.
//!
//! They read files that `cargo xtask fixtures` fetches and fail, saying so, where those are absent.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on stops where it is"
)]

mod definitions;
mod detokenizing;
mod fixtures;
mod performance;
mod real_model;
mod recorded_ids;
mod reply_parsers;
mod template_limits;
mod templates;
mod vectors;
