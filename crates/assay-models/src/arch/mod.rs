//! The architectures: one file each, readable top to bottom like its paper.
//!
//! A network is built from a checked configuration and a file's tensors, and runs a validated [`Pass`].

mod gemma3;
mod llama;

use std::fmt;

use crate::backend::Backend;
use crate::config::{Architecture, ModelConfig};
use crate::error::ModelError;
use crate::kv_cache::KvCache;
use crate::layers::lm_head::LmHead;
use crate::pass::{Buffers, Pass};
use crate::weights::WeightLoader;

/// A decoder: its layers from token rows to hidden states, and the head that reads those.
pub(crate) trait Network<B: Backend>: Send + fmt::Debug {
    /// Runs all layers on `pass`: writes K and V of every row to `kv_cache` and leaves the rows' last hidden states,
    /// `[T, hidden_size]`, in `buffers.hidden`.
    fn forward_layers(
        &self,
        pass: &Pass<'_, B>,
        kv_cache: &mut KvCache<B>,
        buffers: &mut Buffers<B>,
    );

    /// The final norm and the head.
    fn lm_head(&self) -> &LmHead<B>;
}

/// Asks `loader` for the tensors of `config`'s architecture.
///
/// # Errors
/// [`ModelError::Rope`] when the rotation table of `context_length` positions cannot be made; problems of tensors
/// are left with the loader.
pub(crate) fn build<B: Backend>(
    config: &ModelConfig,
    context_length: usize,
    loader: &mut WeightLoader<'_, B>,
) -> Result<Box<dyn Network<B>>, ModelError> {
    Ok(match config.architecture {
        Architecture::Llama => Box::new(llama::Llama::new(config, context_length, loader)?),
        Architecture::Gemma3 => Box::new(gemma3::Gemma3::new(config, context_length, loader)?),
    })
}
