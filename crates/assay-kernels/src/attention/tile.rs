//! A tile: queries of one sequence that read the same KV head, attended together so that a key or value is loaded
//! once for all of them.
//!
//! Query `i` of a KV head is row `i / group` and head `i % group` of the group. Keys and values of a tile go chunk by
//! chunk; each query's part of a chunk is the range of keys that it sees, and no other key touches its sums.

use std::ops::Range;

use super::kv::{KV_BLOCK_TOKENS, KvLayer};
use super::microkernel::ChunkBlocks;
use super::segment::KeyRange;
use super::{AttentionParams, CHUNK_KEYS, SequenceSpan};

/// Blocks of a chunk.
const CHUNK_BLOCKS: usize = CHUNK_KEYS / KV_BLOCK_TOKENS;
/// Blocks between a read of keys, or of values, and the hint for what follows.
const K_AHEAD: usize = 4;
const V_AHEAD: usize = 2;

/// Which queries, and all that they read. The span was validated against the layer and the batch.
#[derive(Clone, Copy)]
pub(super) struct Tile<'a> {
    pub(super) params: &'a AttentionParams<'a>,
    pub(super) layer: &'a KvLayer,
    pub(super) span: &'a SequenceSpan<'a>,
    /// `[num_tokens, num_heads, head_dim]`.
    pub(super) q: &'a [f32],
    pub(super) kv_head: usize,
    pub(super) first_query: usize,
    pub(super) num_queries: usize,
}

impl Tile<'_> {
    /// Chunks that some query of the tile sees.
    pub(super) fn chunks(&self) -> Range<usize> {
        let first = self.params.visible_keys(self.position(0)).start;
        let last = self.position(self.num_queries - 1);
        first / CHUNK_KEYS..last / CHUNK_KEYS + 1
    }

    fn group(&self) -> usize {
        self.params.num_heads / self.params.num_kv_heads
    }

    pub(super) fn position(&self, query: usize) -> usize {
        self.span.first_position + (self.first_query + query) / self.group()
    }

    pub(super) fn head(&self, query: usize) -> usize {
        self.kv_head * self.group() + (self.first_query + query) % self.group()
    }

    /// Logit of the query's sink.
    pub(super) fn sink(&self, query: usize) -> Option<f32> {
        self.params.sinks.map(|sinks| sinks[self.head(query)])
    }

    /// Where the query lies in `q`, and its output in `out`.
    pub(super) fn at(&self, query: usize) -> usize {
        let row = self.span.first_row + (self.first_query + query) / self.group();
        (row * self.params.num_heads + self.head(query)) * self.params.head_dim
    }

    /// The keys of `chunk`, counted from its start, that the query sees; `None` if none.
    pub(super) fn keys_in_chunk(&self, query: usize, chunk: usize) -> Option<KeyRange> {
        let keys = self.params.visible_keys(self.position(query));
        let start = chunk * CHUNK_KEYS;
        let first = keys.start.max(start) - start;
        let end = keys.end.min(start + CHUNK_KEYS).saturating_sub(start);
        (first < end).then_some(KeyRange { first, end })
    }

    /// The tile's queries, scaled, `[head_dim, num_queries]`.
    pub(super) fn packed_queries(&self) -> Vec<f32> {
        let mut packed = vec![0.0; self.params.head_dim * self.num_queries];
        for query in 0..self.num_queries {
            let q = &self.q[self.at(query)..][..self.params.head_dim];
            for (d, &x) in q.iter().enumerate() {
                packed[d * self.num_queries + query] = x * self.params.scale;
            }
        }
        packed
    }

    /// Addresses of the blocks `seen` of `chunk`, and what to ask the cache for meanwhile.
    pub(super) fn chunk_blocks(&self, chunk: usize, seen: Range<usize>) -> ChunkBlocks {
        let mut blocks = ChunkBlocks {
            k: [std::ptr::null(); CHUNK_BLOCKS],
            v: [std::ptr::null(); CHUNK_BLOCKS],
            after_k: [std::ptr::null(); CHUNK_BLOCKS],
            after_v: [std::ptr::null(); CHUNK_BLOCKS],
            head_dim: self.params.head_dim,
        };
        let (k, v) = self.layer.as_bits();
        let table = &self.span.block_table[chunk * CHUNK_BLOCKS..];
        let range = |block: usize| self.layer.head_block(table[block], self.kv_head);
        for block in seen.clone() {
            blocks.k[block] = k[range(block)].as_ptr();
            blocks.v[block] = v[range(block)].as_ptr();
        }
        // Read in this order: the keys, the values, the next chunk's keys if the tile has a next chunk.
        let len = seen.len();
        let mut order = [blocks.v[seen.end - 1]; 2 * CHUNK_BLOCKS + V_AHEAD];
        order[..len].copy_from_slice(&blocks.k[seen.clone()]);
        order[len..2 * len].copy_from_slice(&blocks.v[seen.clone()]);
        if self.chunks().end > chunk + 1 {
            for (ahead, &id) in table.iter().skip(CHUNK_BLOCKS).take(V_AHEAD).enumerate() {
                // The table may go on past the blocks in use, with ids that mean nothing yet.
                if let Some(keys) = k.get(self.layer.head_block(id, self.kv_head)) {
                    order[2 * len + ahead] = keys.as_ptr();
                }
            }
        }
        for (i, block) in seen.enumerate() {
            blocks.after_k[block] = order[i + K_AHEAD.min(len)];
            blocks.after_v[block] = order[len + i + V_AHEAD];
        }
        blocks
    }
}
