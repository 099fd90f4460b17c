//! Which KV blocks are free and which are held. Policy only: no storage, no device.
//!
//! Each held block has a reference count, one for every sequence whose block table names it. Blocks
//! are conserved: free and held together are always the whole pool.

use assay_models::BlockId;

/// The pool's bookkeeping.
#[derive(Debug)]
pub struct BlockManager {
    block_size_tokens: usize,
    free: Vec<BlockId>,
    /// `[num_blocks]` block tables that name each block; 0 is free.
    num_references: Vec<u32>,
}

impl BlockManager {
    /// A pool of `num_blocks` free blocks of `block_size_tokens` each.
    ///
    /// # Panics
    /// If a block would hold no token, or blocks cannot be numbered by `u32`.
    pub fn new(num_blocks: usize, block_size_tokens: usize) -> Self {
        assert!(block_size_tokens > 0, "a KV block holds at least one token");
        let num_blocks_u32 = u32::try_from(num_blocks).expect("KV blocks are numbered by u32");
        Self {
            block_size_tokens,
            // Popped from the end: block 0 goes out first.
            free: (0..num_blocks_u32).rev().map(BlockId).collect(),
            num_references: vec![0; num_blocks],
        }
    }

    /// Blocks that `num_tokens` tokens take.
    pub fn blocks_for(&self, num_tokens: usize) -> usize {
        num_tokens.div_ceil(self.block_size_tokens)
    }

    /// Blocks in the pool.
    pub fn num_blocks(&self) -> usize {
        self.num_references.len()
    }

    /// Tokens the whole pool holds.
    pub fn capacity_tokens(&self) -> usize {
        self.num_blocks().saturating_mul(self.block_size_tokens)
    }

    /// Blocks nobody holds.
    pub fn num_free(&self) -> usize {
        self.free.len()
    }

    /// Blocks somebody holds.
    pub fn num_used(&self) -> usize {
        self.num_blocks() - self.num_free()
    }

    /// Appends blocks to `block_table` until it covers `num_tokens` tokens.
    ///
    /// # Errors
    /// [`OutOfBlocks`] if the pool cannot cover them; nothing is taken then.
    pub fn grow(
        &mut self,
        block_table: &mut Vec<BlockId>,
        num_tokens: usize,
    ) -> Result<(), OutOfBlocks> {
        let num_missing = self
            .blocks_for(num_tokens)
            .saturating_sub(block_table.len());
        if num_missing > self.num_free() {
            return Err(OutOfBlocks);
        }
        for block in self.free.drain(self.free.len() - num_missing..).rev() {
            let count = &mut self.num_references[block.0 as usize];
            assert_eq!(*count, 0, "{block:?} was free and held at once");
            *count = 1;
            block_table.push(block);
        }
        Ok(())
    }

    /// Tokens that `block_table` can come to hold without anyone giving up a block.
    pub fn room_tokens(&self, block_table: &[BlockId]) -> usize {
        (block_table.len() + self.num_free()).saturating_mul(self.block_size_tokens)
    }

    /// Gives back the blocks behind the first `num_tokens` tokens.
    pub fn trim(&mut self, block_table: &mut Vec<BlockId>, num_tokens: usize) {
        let num_kept = self.blocks_for(num_tokens).min(block_table.len());
        let mut rest = block_table.split_off(num_kept);
        self.free(&mut rest);
    }

    /// Drops one reference of each block in `block_table` and empties it.
    ///
    /// # Panics
    /// If a block is not held: it would be handed out twice.
    pub fn free(&mut self, block_table: &mut Vec<BlockId>) {
        for block in block_table.drain(..).rev() {
            let count = &mut self.num_references[block.0 as usize];
            assert!(*count > 0, "{block:?} freed but not held");
            *count -= 1;
            if *count == 0 {
                self.free.push(block);
            }
        }
    }

    /// References of each block, by block index.
    pub fn num_references(&self) -> &[u32] {
        &self.num_references
    }
}

/// The pool has fewer free blocks than asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfBlocks;
