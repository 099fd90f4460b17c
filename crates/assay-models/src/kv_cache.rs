//! Keys and values of all layers, in blocks. Storage only: who owns a block is the engine's business.

use crate::backend::Backend;
use crate::config::ModelConfig;
use crate::error::ModelError;
use crate::forward::KvBlockCopy;

/// f16 keys and values; block `b` of the pool is block `b` of every layer.
#[derive(Debug)]
pub(crate) struct KvCache<B: Backend> {
    layers: Vec<B::KvLayer>,
}

impl<B: Backend> KvCache<B> {
    /// Storage for `num_blocks` blocks in each of `num_layers` of the model's layers; memory is taken from the system as blocks are first written.
    ///
    /// # Errors
    /// [`ModelError::KvCacheTooLarge`] when the system has no room for the whole cache.
    pub(crate) fn new(
        backend: &B,
        config: &ModelConfig,
        num_blocks: usize,
        num_layers: usize,
    ) -> Result<Self, ModelError> {
        let bytes = config.kv_block_bytes().checked_mul(num_blocks);
        if u32::try_from(num_blocks).is_err() || !bytes.is_some_and(can_allocate) {
            return Err(ModelError::KvCacheTooLarge {
                num_kv_blocks: num_blocks,
                num_layers: config.num_hidden_layers,
                num_kv_heads: config.num_key_value_heads,
                head_dim: config.head_dim,
            });
        }
        let layer = |_| backend.kv_layer(num_blocks, config.num_key_value_heads, config.head_dim);
        let layers: Result<_, ModelError> = (0..num_layers).map(layer).collect();
        Ok(Self { layers: layers? })
    }

    /// Copies one block of every layer over another.
    pub(crate) fn copy_block(&mut self, backend: &B, copy: KvBlockCopy) {
        for layer in &mut self.layers {
            backend.copy_block(layer, copy);
        }
    }

    /// Every layer's storage, first layer first.
    pub(crate) fn layers_mut(&mut self) -> &mut [B::KvLayer] {
        &mut self.layers
    }
}

/// Asks the system for `bytes` and gives them back: sizes come from a file, and a refusal later would abort.
fn can_allocate(bytes: usize) -> bool {
    Vec::<u8>::new().try_reserve_exact(bytes).is_ok()
}
