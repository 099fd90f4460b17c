//! Tests against vocabularies, templates and recorded results of other implementations.
//!
//! They read files that `cargo xtask fixtures` fetches and fail, saying so, where those are absent.

mod fixtures;
mod templates;
mod vectors;
