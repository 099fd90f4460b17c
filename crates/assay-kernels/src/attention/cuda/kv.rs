//! The keys and values of a layer in a device's memory.

use super::MAX_HEAD_DIM;
use crate::attention::KV_BLOCK_TOKENS;
use crate::cuda::{Cuda, CudaError, DeviceBuffer};

/// Keys and values of one layer, in the storage order of the CPU's layer.
#[derive(Debug)]
pub struct DeviceKvLayer {
    pub(super) num_blocks: usize,
    pub(super) num_kv_heads: usize,
    pub(super) head_dim: usize,
    pub(super) k: DeviceBuffer<u16>,
    pub(super) v: DeviceBuffer<u16>,
}

impl DeviceKvLayer {
    /// Storage for `num_blocks` blocks.
    ///
    /// # Errors
    /// [`CudaError`]: no memory, or heads longer than the kernels read.
    ///
    /// # Panics
    /// If `head_dim` is not a positive multiple of 16, or the size overflows.
    pub fn new(
        cuda: &Cuda,
        num_blocks: usize,
        num_kv_heads: usize,
        head_dim: usize,
    ) -> Result<Self, CudaError> {
        assert!(
            head_dim > 0 && head_dim.is_multiple_of(16),
            "head_dim {head_dim} is not a positive multiple of 16"
        );
        if head_dim > MAX_HEAD_DIM {
            return Err(CudaError::Unsupported(format!(
                "heads of {head_dim} elements are longer than the attention kernel's {MAX_HEAD_DIM}; use --device cpu"
            )));
        }
        let len = num_kv_heads
            .checked_mul(head_dim * KV_BLOCK_TOKENS)
            .and_then(|block| block.checked_mul(num_blocks))
            .expect("the KV layer's size fits in memory's address space");
        Ok(Self {
            num_blocks,
            num_kv_heads,
            head_dim,
            k: DeviceBuffer::zeroed(cuda, len)?,
            v: DeviceBuffer::zeroed(cuda, len)?,
        })
    }

    /// Copies all keys and values of block `from` over those of block `to`, bit for bit.
    ///
    /// # Panics
    /// If the layer lacks one of them.
    pub fn copy_block(&mut self, cuda: &Cuda, from: u32, to: u32) {
        if from == to {
            return;
        }
        let len = self.num_kv_heads * self.head_dim * KV_BLOCK_TOKENS;
        let (from, to) = (from as usize * len, to as usize * len);
        self.k.copy_within(cuda, from, to, len);
        self.v.copy_within(cuda, from, to, len);
    }

    /// Fills every slot with `bits`; tests put NaN where nothing was written.
    ///
    /// # Errors
    /// As [`DeviceKvLayer::new`].
    pub fn fill(&mut self, cuda: &Cuda, bits: u16) -> Result<(), CudaError> {
        let bits = vec![bits; self.k.len()];
        self.k.fill(cuda, &bits);
        self.v.fill(cuda, &bits);
        cuda.check()
    }
}
