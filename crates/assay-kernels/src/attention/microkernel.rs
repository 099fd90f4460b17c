//! The two inner loops of attention on registers: scores of T queries by V key vectors, and values of T queries
//! by V vectors of the head. Both only interleave independent fma chains; no chain's order depends on T or V.

#![expect(
    clippy::needless_range_loop,
    reason = "t and v name registers, not positions of one array"
)]

use std::ops::Range;

use super::CHUNK_KEYS;
use super::kv::KV_BLOCK_TOKENS;
use super::segment::KeyRange;
use crate::simd::Simd;

/// Distance between the score rows of a tile's queries: a chunk, and a cache line so that rows do not share sets.
pub(super) const SCORE_STRIDE: usize = CHUNK_KEYS + 16;

/// One KV head's blocks of one chunk.
#[derive(Clone, Copy)]
pub(super) struct ChunkBlocks {
    /// f16 bits of each block's keys, `[head_dim, 16]`, and of its values, `[16, head_dim]`; valid for the blocks
    /// that some query of the tile sees.
    pub(super) k: [*const u16; CHUNK_KEYS / KV_BLOCK_TOKENS],
    pub(super) v: [*const u16; CHUNK_KEYS / KV_BLOCK_TOKENS],
    /// What will be read after each block of keys, and after each block of values: hints to the cache, for few
    /// queries wait for memory. Any address is legal.
    pub(super) after_k: [*const u16; CHUNK_KEYS / KV_BLOCK_TOKENS],
    pub(super) after_v: [*const u16; CHUNK_KEYS / KV_BLOCK_TOKENS],
    pub(super) head_dim: usize,
}

/// Most queries of a tile that is worth prefetching for.
const PREFETCH_QUERIES: usize = 6;

/// Expands to `$kernel::<S, T, V>` for the number of queries at hand, with V by the registers that T leaves:
/// enough chains to hide the fma's latency, and few enough to stay in registers.
macro_rules! for_num_queries {
    ($simd:ident, $num_queries:expr, $kernel:ident, $arguments:tt) => {
        match $num_queries {
            1 => $kernel::<S, 1, 8> $arguments,
            2 => $kernel::<S, 2, 4> $arguments,
            3 if S::TILE_QUERIES < 24 => $kernel::<S, 3, 2> $arguments,
            3 => $kernel::<S, 3, 4> $arguments,
            4 => $kernel::<S, 4, 2> $arguments,
            5 => $kernel::<S, 5, 2> $arguments,
            6 => $kernel::<S, 6, 2> $arguments,
            7 if S::TILE_QUERIES >= 7 => $kernel::<S, 7, 2> $arguments,
            8 if S::TILE_QUERIES >= 8 => $kernel::<S, 8, 2> $arguments,
            9 if S::TILE_QUERIES >= 9 => $kernel::<S, 9, 2> $arguments,
            10 if S::TILE_QUERIES >= 10 => $kernel::<S, 10, 2> $arguments,
            11 if S::TILE_QUERIES >= 11 => $kernel::<S, 11, 2> $arguments,
            12 if S::TILE_QUERIES >= 12 => $kernel::<S, 12, 2> $arguments,
            13 if S::TILE_QUERIES >= 13 => $kernel::<S, 13, 1> $arguments,
            14 if S::TILE_QUERIES >= 14 => $kernel::<S, 14, 1> $arguments,
            15 if S::TILE_QUERIES >= 15 => $kernel::<S, 15, 1> $arguments,
            16 if S::TILE_QUERIES >= 16 => $kernel::<S, 16, 1> $arguments,
            17 if S::TILE_QUERIES >= 17 => $kernel::<S, 17, 1> $arguments,
            18 if S::TILE_QUERIES >= 18 => $kernel::<S, 18, 1> $arguments,
            19 if S::TILE_QUERIES >= 19 => $kernel::<S, 19, 1> $arguments,
            20 if S::TILE_QUERIES >= 20 => $kernel::<S, 20, 1> $arguments,
            21 if S::TILE_QUERIES >= 21 => $kernel::<S, 21, 1> $arguments,
            22 if S::TILE_QUERIES >= 22 => $kernel::<S, 22, 1> $arguments,
            23 if S::TILE_QUERIES >= 23 => $kernel::<S, 23, 1> $arguments,
            24 if S::TILE_QUERIES >= 24 => $kernel::<S, 24, 1> $arguments,
            wrong => unreachable!("a tile of {wrong} queries"),
        }
    };
}

/// Scores of `num_queries` queries for every key of the blocks `seen` of a chunk.
///
/// # Safety
/// `q` is `[head_dim, num_queries]`, `scores` holds `num_queries` rows at [`SCORE_STRIDE`], the blocks named are
/// valid, and all lie in the chunk.
#[inline(always)]
pub(super) unsafe fn scores<S: Simd>(
    simd: S,
    num_queries: usize,
    blocks: &ChunkBlocks,
    seen: Range<usize>,
    q: *const f32,
    scores: *mut f32,
) {
    let vectors_per_block = KV_BLOCK_TOKENS / S::F32_LANES;
    let (first, end) = (seen.start * vectors_per_block, seen.end * vectors_per_block);
    // SAFETY: this function's contract, handed on.
    unsafe {
        for_num_queries!(
            simd,
            num_queries,
            scores_of,
            (simd, blocks, first, end, q, scores)
        );
    }
}

/// # Safety
/// As [`scores`], for T queries and key vectors `first..end`.
#[inline(always)]
unsafe fn scores_of<S: Simd, const T: usize, const V: usize>(
    simd: S,
    blocks: &ChunkBlocks,
    first: usize,
    end: usize,
    q: *const f32,
    scores: *mut f32,
) {
    let mut vector = first;
    // SAFETY: the vectors visited are those of the caller's range.
    unsafe {
        while vector + V <= end {
            scores_kernel::<S, T, V>(simd, blocks, vector, q, scores);
            vector += V;
        }
        while vector < end {
            scores_kernel::<S, T, 1>(simd, blocks, vector, q, scores);
            vector += 1;
        }
    }
}

/// # Safety
/// As [`scores`], for T queries and V key vectors from `vector` on.
#[inline(always)]
unsafe fn scores_kernel<S: Simd, const T: usize, const V: usize>(
    simd: S,
    blocks: &ChunkBlocks,
    vector: usize,
    q: *const f32,
    scores: *mut f32,
) {
    // SAFETY: a vector lies inside one block, whose rows are 16 keys long; T, V and the loops stay in the shapes
    // of the caller's contract.
    unsafe {
        let mut keys = [std::ptr::null(); V];
        let mut after = [std::ptr::null::<u16>(); V];
        for v in 0..V {
            let slot = (vector + v) * S::F32_LANES;
            keys[v] = blocks.k[slot / KV_BLOCK_TOKENS].add(slot % KV_BLOCK_TOKENS);
            after[v] = blocks.after_k[slot / KV_BLOCK_TOKENS];
        }
        let mut sums = [[simd.splat(0.0); V]; T];
        for d in 0..blocks.head_dim {
            let mut key = [simd.splat(0.0); V];
            for v in 0..V {
                key[v] = simd.load_f16(keys[v].add(d * KV_BLOCK_TOKENS));
                if T <= PREFETCH_QUERIES && v * S::F32_LANES % KV_BLOCK_TOKENS == 0 {
                    simd.prefetch(after[v].wrapping_add(d * KV_BLOCK_TOKENS));
                }
            }
            for t in 0..T {
                let query = simd.splat(*q.add(d * T + t));
                for v in 0..V {
                    sums[t][v] = simd.fma(query, key[v], sums[t][v]);
                }
            }
        }
        for t in 0..T {
            for v in 0..V {
                simd.store(
                    scores.add(t * SCORE_STRIDE + (vector + v) * S::F32_LANES),
                    sums[t][v],
                );
            }
        }
    }
}

/// Continues the value chains of `num_queries` queries over `keys` of a chunk.
///
/// # Safety
/// `p` holds `num_queries` rows at [`SCORE_STRIDE`], `values` is `[num_queries, head_dim]`, and the keys are of
/// valid blocks.
#[inline(always)]
pub(super) unsafe fn values<S: Simd>(
    simd: S,
    num_queries: usize,
    blocks: &ChunkBlocks,
    keys: KeyRange,
    p: *const f32,
    values: *mut f32,
) {
    // SAFETY: this function's contract, handed on.
    unsafe {
        for_num_queries!(
            simd,
            num_queries,
            values_of,
            (simd, blocks, keys, p, values)
        );
    }
}

/// # Safety
/// As [`values`], for T queries.
#[inline(always)]
unsafe fn values_of<S: Simd, const T: usize, const V: usize>(
    simd: S,
    blocks: &ChunkBlocks,
    keys: KeyRange,
    p: *const f32,
    values: *mut f32,
) {
    let mut d = 0;
    // SAFETY: the elements visited are those of the head.
    unsafe {
        while d + V * S::F32_LANES <= blocks.head_dim {
            values_kernel::<S, T, V>(simd, blocks, d, keys, p, values);
            d += V * S::F32_LANES;
        }
        if V > 4 && d + 4 * S::F32_LANES <= blocks.head_dim {
            values_kernel::<S, T, 4>(simd, blocks, d, keys, p, values);
            d += 4 * S::F32_LANES;
        }
        while d < blocks.head_dim {
            values_kernel::<S, T, 1>(simd, blocks, d, keys, p, values);
            d += S::F32_LANES;
        }
    }
}

/// # Safety
/// As [`values`], for T queries and V vectors of the head from element `d` on.
#[inline(always)]
unsafe fn values_kernel<S: Simd, const T: usize, const V: usize>(
    simd: S,
    blocks: &ChunkBlocks,
    d: usize,
    keys: KeyRange,
    p: *const f32,
    values: *mut f32,
) {
    let head_dim = blocks.head_dim;
    // SAFETY: `d + V * F32_LANES <= head_dim` by the caller; T, V and the loops stay in the shapes of the contract.
    unsafe {
        let mut sums = [[simd.splat(0.0); V]; T];
        for t in 0..T {
            for v in 0..V {
                sums[t][v] = simd.load(values.add(t * head_dim + d + v * S::F32_LANES));
            }
        }
        let mut key = keys.first;
        while key < keys.end {
            let block = key / KV_BLOCK_TOKENS;
            let block_end = keys.end.min((block + 1) * KV_BLOCK_TOKENS);
            let rows = blocks.v[block].add(d);
            let after = blocks.after_v[block].wrapping_add(d);
            let mut weights = p.add(key);
            while key < block_end {
                // An address with an index would make two operations of each fma that reads it.
                weights = simd.opaque(weights);
                let row = rows.add(key % KV_BLOCK_TOKENS * head_dim);
                let mut value = [simd.splat(0.0); V];
                for v in 0..V {
                    value[v] = simd.load_f16(row.add(v * S::F32_LANES));
                    if T <= PREFETCH_QUERIES && v * S::F32_LANES % 32 == 0 {
                        let ahead = key % KV_BLOCK_TOKENS * head_dim + v * S::F32_LANES;
                        simd.prefetch(after.wrapping_add(ahead));
                    }
                }
                for t in 0..T {
                    let weight = simd.splat(*weights.add(t * SCORE_STRIDE));
                    for v in 0..V {
                        sums[t][v] = simd.fma(weight, value[v], sums[t][v]);
                    }
                }
                key += 1;
                weights = weights.add(1);
            }
        }
        for t in 0..T {
            for v in 0..V {
                simd.store(values.add(t * head_dim + d + v * S::F32_LANES), sums[t][v]);
            }
        }
    }
}
