//! The model boundary: token ids in, logits out.
//!
//! Judged by logits recorded from others (`reference_logits`, `real_model`), by f32 matrices of the same values (`block_formats`), by their own bits under every way of
//! running them (`invariance`), and by what is refused (`refused_files`, `malformed_batches`).

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and prints its figures"
)]

mod block_formats;
mod cuda;
mod invariance;
mod malformed_batches;
mod packed_cache;
mod real_model;
mod recorded;
mod reference_logits;
mod refused_files;
mod support;
