//! Language models over the kernels: configuration, typed weights, one readable file per
//! architecture, KV storage, and one door: [`ForwardModel::forward`] from [`ForwardBatch`] to [`Logits`].
//!
//! Knows nothing of requests, sampling or time.
#![forbid(unsafe_code)]

pub mod forward;

pub use forward::{BlockId, ForwardBatch, ForwardError, ForwardModel, Logits, ModelInfo, TokenId};
