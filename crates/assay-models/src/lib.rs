//! Language models over the kernels: configuration, typed weights, one readable file per
//! architecture, KV storage, and one door: [`ForwardModel::forward`] from [`ForwardBatch`] to [`Logits`].
//!
//! Knows nothing of requests, sampling or time.
#![forbid(unsafe_code)]

mod arch;
mod backend;
pub mod config;
pub mod error;
pub mod forward;
mod kv_cache;
mod layers;
pub mod model;
pub mod packed_cache;
mod pass;
mod runner;
mod split;
mod validate;
pub mod weights;

pub use config::{Architecture, LayerType, ModelConfig, RopeConfig};
pub use error::{ModelError, TensorProblem, TensorProblems};
pub use forward::{
    BlockId, ForwardBatch, ForwardError, ForwardModel, KvBlockCopy, Logits, ModelInfo, TokenId,
};
pub use model::{LoadOptions, Model, Numerics};
pub use packed_cache::{CacheEvent, PackedCache};
pub use split::Stage;
pub use weights::{LoadProgress, ProgressFn};
