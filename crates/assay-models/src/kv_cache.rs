//! Keys and values of all layers, in blocks. Storage only: who owns a block is the engine's business.

use assay_kernels::attention::{KV_BLOCK_TOKENS, KvLayer};

use crate::config::ModelConfig;
use crate::error::ModelError;

/// f16 keys and values, one [`KvLayer`] a layer; block `b` of the pool is block `b` of every layer.
#[derive(Debug)]
pub(crate) struct KvCache {
    layers: Vec<KvLayer>,
}

impl KvCache {
    /// Storage for `num_blocks` blocks a layer; memory is taken from the system as blocks are first written.
    ///
    /// # Errors
    /// [`ModelError::KvCacheTooLarge`] when the whole cache does not fit an address space.
    pub(crate) fn new(config: &ModelConfig, num_blocks: usize) -> Result<Self, ModelError> {
        let fits = block_bytes(config)
            .checked_mul(num_blocks)
            .is_some_and(|bytes| isize::try_from(bytes).is_ok());
        if !fits || u32::try_from(num_blocks).is_err() {
            return Err(ModelError::KvCacheTooLarge {
                num_kv_blocks: num_blocks,
                num_layers: config.num_hidden_layers,
                num_kv_heads: config.num_key_value_heads,
                head_dim: config.head_dim,
            });
        }
        let layer = |_| KvLayer::new(num_blocks, config.num_key_value_heads, config.head_dim);
        Ok(Self {
            layers: (0..config.num_hidden_layers).map(layer).collect(),
        })
    }

    /// Every layer's storage, first layer first.
    pub(crate) fn layers_mut(&mut self) -> &mut [KvLayer] {
        &mut self.layers
    }
}

/// Bytes of one block across all layers, K and V together; the configuration's ranges keep it from overflowing.
pub(crate) fn block_bytes(config: &ModelConfig) -> usize {
    config.num_hidden_layers * config.key_value_size() * KV_BLOCK_TOKENS * 2 * size_of::<u16>()
}

impl ModelConfig {
    /// Bytes of one KV block across all layers, K and V together: what a memory budget is divided by.
    pub fn kv_block_bytes(&self) -> usize {
        block_bytes(self)
    }
}
