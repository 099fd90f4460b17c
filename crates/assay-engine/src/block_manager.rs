//! Which KV blocks are free, held, or kept for later. Policy only: no storage, no device, no clock.
//!
//! Each held block has a reference count, one for every sequence whose block table names it. A block
//! that nobody holds any more is free, or stays cached while the prefix tree knows its tokens; the cached
//! block that was used longest ago goes first when none is free. Blocks are conserved: free, cached and
//! held together are always the whole pool.
//!
//! A block joins the tree when it is computed, and its tokens' rows are never written again while it is
//! there. Whoever holds a node holds all before it, so cached blocks always go leaf by leaf.

use std::collections::BTreeSet;

use assay_models::{BlockId, KvBlockCopy};

use crate::prefix_tree::{Found, Inserted, Parent, PrefixTree};
use crate::sequence::Sequence;

/// Whether computed blocks are kept and shared. Changes time and counts, never a token or a score.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrefixCache {
    /// Across all sequences of one salt.
    #[default]
    On,
    /// Every sequence computes all of its tokens.
    Off,
}

/// The pool's bookkeeping.
#[derive(Debug)]
pub struct BlockManager {
    block_size_tokens: usize,
    prefix_cache: PrefixCache,
    free: Vec<BlockId>,
    /// `[num_blocks]` block tables that name each block; 0 is free or cached.
    num_references: Vec<u32>,
    tree: PrefixTree,
    /// Nodes that nobody holds.
    num_cached: usize,
    /// Those of them without children, by when they were last used.
    evictable: BTreeSet<(u64, BlockId)>,
    /// `[num_blocks]` when each was last used, in uses so far.
    last_used: Vec<u64>,
    num_uses: u64,
    num_evictions: u64,
}

/// What the cache can spare a sequence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheHit {
    found: Found,
    first_block: usize,
    /// Leading tokens that need no computing.
    pub num_tokens: usize,
}

impl CacheHit {
    /// Blocks that are shared as they are.
    pub fn num_shared_blocks(&self) -> usize {
        self.found.blocks.len()
    }
}

impl BlockManager {
    /// A pool of `num_blocks` free blocks of `block_size_tokens` each.
    ///
    /// # Panics
    /// If a block would hold no token, or blocks cannot be numbered by `u32`.
    pub fn new(num_blocks: usize, block_size_tokens: usize, prefix_cache: PrefixCache) -> Self {
        assert!(block_size_tokens > 0, "a KV block holds at least one token");
        let num_blocks_u32 = u32::try_from(num_blocks).expect("KV blocks are numbered by u32");
        Self {
            block_size_tokens,
            prefix_cache,
            // Popped from the end: block 0 goes out first.
            free: (0..num_blocks_u32).rev().map(BlockId).collect(),
            num_references: vec![0; num_blocks],
            tree: PrefixTree::new(num_blocks, block_size_tokens),
            num_cached: 0,
            evictable: BTreeSet::new(),
            last_used: vec![0; num_blocks],
            num_uses: 0,
            num_evictions: 0,
        }
    }

    /// Whether blocks are kept and shared.
    pub fn prefix_cache(&self) -> PrefixCache {
        self.prefix_cache
    }

    /// Tokens in one block.
    pub fn block_size_tokens(&self) -> usize {
        self.block_size_tokens
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

    /// Blocks that nobody holds and that hold nothing.
    pub fn num_free(&self) -> usize {
        self.free.len()
    }

    /// Blocks that nobody holds, kept for their tokens.
    pub fn num_cached(&self) -> usize {
        self.num_cached
    }

    /// Blocks that can be had: free and cached ones.
    pub fn num_available(&self) -> usize {
        self.num_free() + self.num_cached()
    }

    /// Blocks somebody holds.
    pub fn num_used(&self) -> usize {
        self.num_blocks() - self.num_available()
    }

    /// Cached blocks given up for others so far.
    pub fn num_evictions(&self) -> u64 {
        self.num_evictions
    }

    /// References of each block, by block index.
    pub fn num_references(&self) -> &[u32] {
        &self.num_references
    }

    /// Whether the tree knows the tokens of `block`.
    pub fn is_in_tree(&self, block: BlockId) -> bool {
        self.tree.contains(block)
    }

    /// What the cache can spare `sequence` beyond what it has computed; never a token whose logits it
    /// wants ([`Sequence::max_reused_tokens`]).
    pub fn find(&self, sequence: &Sequence) -> Option<CacheHit> {
        if self.prefix_cache == PrefixCache::Off {
            return None;
        }
        let block_size = self.block_size_tokens;
        let first_block = sequence.num_computed_tokens / block_size;
        let begin = first_block * block_size;
        let wanted = sequence
            .token_ids
            .get(begin..sequence.max_reused_tokens())?;
        let found = self.tree.find(&parent(sequence, first_block), wanted);
        let num_partial = found.partial.map_or(0, |(_, num_tokens)| num_tokens);
        let num_tokens = begin + found.blocks.len() * block_size + num_partial;
        (num_tokens > sequence.num_computed_tokens).then_some(CacheHit {
            found,
            first_block,
            num_tokens,
        })
    }

    /// Blocks to be had for a sequence of `num_tokens` that takes `hit`, beyond those it needs; `None` if
    /// they do not suffice.
    pub fn room_beside(&self, num_tokens: usize, hit: Option<&CacheHit>) -> Option<usize> {
        let shared = hit.map_or(&[][..], |hit| &hit.found.blocks);
        let num_from_cache = shared.iter().filter(|&&block| !self.is_held(block)).count();
        let num_new = self.blocks_for(num_tokens) - shared.len();
        self.num_available()
            .checked_sub(num_from_cache)?
            .checked_sub(num_new)
    }

    /// Gives `sequence` what [`BlockManager::find`] has just found for it, and blocks for all its tokens.
    /// What is left to be done to the storage before anything else is written there: at most one copy.
    ///
    /// # Errors
    /// [`OutOfBlocks`] if the pool cannot cover the tokens; the shared blocks are taken all the same.
    pub fn take_hit(
        &mut self,
        sequence: &mut Sequence,
        hit: CacheHit,
    ) -> Result<Option<KvBlockCopy>, OutOfBlocks> {
        let num_tokens = hit.num_tokens;
        let partial_index = hit.first_block + hit.found.blocks.len();
        for (index, block) in (hit.first_block..).zip(hit.found.blocks) {
            self.reference(block);
            match sequence.block_table.get_mut(index) {
                Some(own) => {
                    let own = std::mem::replace(own, block);
                    self.release(own);
                }
                None => sequence.block_table.push(block),
            }
        }
        if let Some((from, _)) = hit.found.partial {
            self.touch(from);
        }
        // The copy's source may be evicted right here. Its rows stay until something is written, and the
        // copy comes before that; if it became the sequence's own, they are where they should be.
        self.grow(sequence)?;
        sequence.reuse(num_tokens);
        Ok(hit.found.partial.and_then(|(from, _)| {
            let to = sequence.block_table[partial_index];
            (from != to).then_some(KvBlockCopy { from, to })
        }))
    }

    /// Lets `branch`, which holds no block and begins with all of `trunk`'s tokens, share the blocks that they fill, take
    /// what the cache knows beyond them, and have blocks of its own for the rest. What is left to be done to the
    /// storage before anything else is written there: at most one copy, of the block that they part in.
    ///
    /// `trunk` must have computed all its tokens.
    ///
    /// # Errors
    /// [`OutOfBlocks`] if the pool cannot cover the rest; nothing is taken then.
    pub fn fork(
        &mut self,
        trunk: &Sequence,
        branch: &mut Sequence,
    ) -> Result<Option<KvBlockCopy>, OutOfBlocks> {
        let num_forked = trunk.num_computed_tokens;
        let num_shared = num_forked / self.block_size_tokens;
        for &block in &trunk.block_table[..num_shared] {
            self.reference(block);
            branch.block_table.push(block);
        }
        branch.num_computed_tokens = num_shared * self.block_size_tokens;
        let hit = self
            .find(branch)
            .filter(|hit| branch.is_cached && hit.num_tokens >= num_forked);
        let room = self.room_beside(
            branch.token_ids.len() - branch.num_computed_tokens,
            hit.as_ref(),
        );
        if room.is_none() {
            self.give_back(branch);
            return Err(OutOfBlocks);
        }
        if let Some(hit) = hit {
            let copy = self.take_hit(branch, hit)?;
            branch.num_cached_tokens = branch.num_computed_tokens - num_forked;
            return Ok(copy);
        }
        self.grow(branch)?;
        branch.num_computed_tokens = num_forked;
        let is_inside_block = !num_forked.is_multiple_of(self.block_size_tokens);
        Ok(is_inside_block.then(|| KvBlockCopy {
            from: trunk.block_table[num_shared],
            to: branch.block_table[num_shared],
        }))
    }

    /// Appends blocks to the sequence's table until it covers all its tokens.
    ///
    /// # Errors
    /// [`OutOfBlocks`] if the pool cannot cover them; nothing is taken then.
    pub fn grow(&mut self, sequence: &mut Sequence) -> Result<(), OutOfBlocks> {
        self.grow_for_draft(sequence, 0)
    }

    /// The same for `num_draft_tokens` behind its tokens as well; [`BlockManager::trim`] gives back what the draft
    /// did not come to need.
    ///
    /// # Errors
    /// As [`BlockManager::grow`].
    pub fn grow_for_draft(
        &mut self,
        sequence: &mut Sequence,
        num_draft_tokens: usize,
    ) -> Result<(), OutOfBlocks> {
        let num_tokens = sequence.token_ids.len() + num_draft_tokens;
        let block_table = &mut sequence.block_table;
        let num_missing = self
            .blocks_for(num_tokens)
            .saturating_sub(block_table.len());
        if num_missing > self.num_available() {
            return Err(OutOfBlocks);
        }
        for _ in 0..num_missing {
            let block = match self.free.pop() {
                Some(block) => block,
                None => self.evict(),
            };
            let count = &mut self.num_references[block.0 as usize];
            assert_eq!(*count, 0, "{block:?} was free and held at once");
            *count = 1;
            block_table.push(block);
        }
        Ok(())
    }

    /// Tokens that `sequence` can come to hold while nobody else gives up a block: cached ones may go for them.
    pub fn room_tokens(&self, sequence: &Sequence) -> usize {
        (sequence.block_table.len() + self.num_available()).saturating_mul(self.block_size_tokens)
    }

    /// Gives back the blocks behind the sequence's tokens: what stood there was a draft.
    pub fn trim(&mut self, sequence: &mut Sequence) {
        let num_kept = self.blocks_for(sequence.token_ids.len());
        let num_kept = num_kept.min(sequence.block_table.len());
        for block in sequence.block_table.split_off(num_kept).into_iter().rev() {
            self.release(block);
        }
    }

    /// Makes the whole blocks that `sequence` computed from token `begin` on known to the tree. Where it
    /// knows the same tokens already, the sequence takes that block and gives up its own: the contract
    /// makes them equal to the bit.
    pub fn cache_blocks(&mut self, sequence: &mut Sequence, begin: usize) {
        let block_size = self.block_size_tokens;
        for index in begin / block_size..sequence.num_computed_tokens / block_size {
            let end = (index + 1) * block_size;
            self.insert(sequence, index, end);
        }
    }

    /// Makes what `sequence` computed of a block that is not full known to the tree, to be copied from.
    pub fn cache_tail(&mut self, sequence: &mut Sequence) {
        let end = sequence.num_computed_tokens;
        if !end.is_multiple_of(self.block_size_tokens) {
            self.insert(sequence, end / self.block_size_tokens, end);
        }
    }

    /// Drops the sequence's references and empties its table; what was computed stays cached.
    ///
    /// # Panics
    /// If a block is not held: it would be handed out twice.
    pub fn free(&mut self, sequence: &mut Sequence) {
        self.cache_tail(sequence);
        self.give_back(sequence);
    }

    fn give_back(&mut self, sequence: &mut Sequence) {
        for block in std::mem::take(&mut sequence.block_table).into_iter().rev() {
            self.release(block);
        }
    }

    fn insert(&mut self, sequence: &mut Sequence, index: usize, end: usize) {
        if self.prefix_cache == PrefixCache::Off || !sequence.is_cached {
            return;
        }
        let parent = parent(sequence, index);
        let token_ids = &sequence.token_ids[index * self.block_size_tokens..end];
        let is_whole = token_ids.len() == self.block_size_tokens;
        let own = sequence.block_table[index];
        match self.tree.insert(&parent, token_ids, own) {
            Inserted::Node { replaced } => {
                if let Some(replaced) = replaced
                    && replaced != own
                    && !self.is_held(replaced)
                {
                    self.num_cached -= 1;
                    self.evictable.remove(&self.age(replaced));
                    self.free.push(replaced);
                }
            }
            Inserted::Present(present) if is_whole && present != own => {
                self.reference(present);
                sequence.block_table[index] = present;
                self.release(own);
            }
            Inserted::Present(_) => {}
        }
    }

    fn reference(&mut self, block: BlockId) {
        if !self.is_held(block) {
            self.num_cached -= 1;
            self.evictable.remove(&self.age(block));
        }
        self.num_references[block.0 as usize] += 1;
    }

    fn release(&mut self, block: BlockId) {
        let count = &mut self.num_references[block.0 as usize];
        assert!(*count > 0, "{block:?} freed but not held");
        *count -= 1;
        if *count > 0 {
            return;
        }
        if !self.tree.contains(block) {
            self.free.push(block);
            return;
        }
        self.num_cached += 1;
        self.last_used[block.0 as usize] = self.next_use();
        if self.tree.is_leaf(block) {
            self.evictable.insert(self.age(block));
        }
    }

    /// Marks a node as used just now.
    fn touch(&mut self, block: BlockId) {
        let was_evictable = self.evictable.remove(&self.age(block));
        self.last_used[block.0 as usize] = self.next_use();
        if was_evictable {
            self.evictable.insert(self.age(block));
        }
    }

    /// Gives up the cached leaf that was used longest ago.
    fn evict(&mut self) -> BlockId {
        let (_, block) = self
            .evictable
            .pop_first()
            .expect("cached blocks end in leaves: who holds a node holds its parents");
        self.num_cached -= 1;
        self.num_evictions += 1;
        if let Parent::Block(parent) = self.tree.remove(block)
            && self.tree.is_leaf(parent)
            && !self.is_held(parent)
        {
            self.evictable.insert(self.age(parent));
        }
        block
    }

    fn is_held(&self, block: BlockId) -> bool {
        self.num_references[block.0 as usize] > 0
    }

    fn age(&self, block: BlockId) -> (u64, BlockId) {
        (self.last_used[block.0 as usize], block)
    }

    fn next_use(&mut self) -> u64 {
        self.num_uses += 1;
        self.num_uses
    }
}

/// What comes before the sequence's block `index`, all of it computed.
fn parent(sequence: &Sequence, index: usize) -> Parent {
    match index.checked_sub(1) {
        None => Parent::Root(sequence.cache_salt.clone()),
        Some(before) => Parent::Block(sequence.block_table[before]),
    }
}

/// The pool has fewer blocks to be had than asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfBlocks;
