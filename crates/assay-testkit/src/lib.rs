//! Development only: tiny models, a scripted logits source, fixtures and check helpers shared by the crates' tests.

#![forbid(unsafe_code)]

pub mod gguf_value;
pub mod gguf_walk;
pub mod gguf_writer;
#[cfg(feature = "models")]
pub mod scripted;
pub mod tiny_model;
