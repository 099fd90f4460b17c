//! Development only: tiny models, fixtures and check helpers shared by the crates' tests.

#![forbid(unsafe_code)]

pub mod gguf_writer;
