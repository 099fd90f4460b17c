//! The architectures: one file each, readable top to bottom like its paper.
//!
//! A network is built from a checked configuration and a file's tensors, and runs a validated [`Pass`].

mod gemma3;
mod llama;

use std::fmt;

use crate::config::{Architecture, ModelConfig};
use crate::error::ModelError;
use crate::kv_cache::KvCache;
use crate::pass::{Buffers, Pass};
use crate::weights::WeightLoader;

/// A decoder: from token rows to the logits of the wanted ones.
pub(crate) trait Network: Send + fmt::Debug {
    /// Runs `pass`: writes K and V of every row to `kv_cache` and returns `[num_logit_rows, vocab_size]`.
    fn forward(&self, pass: &Pass<'_>, kv_cache: &mut KvCache, buffers: &mut Buffers) -> Vec<f32>;
}

/// Asks `loader` for the tensors of `config`'s architecture.
///
/// # Errors
/// [`ModelError::Rope`] when the rotation table of `context_length` positions cannot be made; problems of tensors
/// are left with the loader.
pub(crate) fn build(
    config: &ModelConfig,
    context_length: usize,
    loader: &mut WeightLoader<'_>,
) -> Result<Box<dyn Network>, ModelError> {
    Ok(match config.architecture {
        Architecture::Llama => Box::new(llama::Llama::new(config, context_length, loader)?),
        Architecture::Gemma3 => Box::new(gemma3::Gemma3::new(config, context_length, loader)?),
    })
}
