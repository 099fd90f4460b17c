//! One chunk of a tile: `(m_c, l_c)` and `o_c` of each query.

use super::microkernel::{self, SCORE_STRIDE};
use super::segment::{KeyRange, Segment, push_segments};
use super::softmax::chunk_weights;
use super::tile::Tile;
use super::{CHUNK_KEYS, KV_BLOCK_TOKENS, reference};
use crate::simd::{Simd, VectorOp};

/// What one chunk gave a tile. A query that sees no key of the chunk has an entry without meaning.
pub(super) struct ChunkPart {
    /// `(m_c, l_c)` of each query.
    pub(super) sums: Vec<(f32, f32)>,
    /// `o_c`, `[num_queries, head_dim]`.
    pub(super) values: Vec<f32>,
}

impl ChunkPart {
    /// Memory for a chunk of `tile`.
    pub(super) fn new(tile: &Tile<'_>) -> Self {
        Self {
            sums: vec![(0.0, 0.0); tile.num_queries],
            values: vec![0.0; tile.num_queries * tile.params.head_dim],
        }
    }
}

/// A tile's working memory.
pub(super) struct Scratch {
    /// Scaled queries, `[head_dim, num_queries]`.
    q: Vec<f32>,
    /// A row of scores, then of `p`, for each query, at [`SCORE_STRIDE`].
    scores: Vec<f32>,
    /// Keys seen by each query that sees any of the chunk.
    ranges: Vec<KeyRange>,
    segments: Vec<Segment>,
}

impl Scratch {
    /// Memory for `tile`, its queries packed.
    pub(super) fn new(tile: &Tile<'_>) -> Self {
        Self {
            q: tile.packed_queries(),
            scores: vec![0.0; tile.num_queries * SCORE_STRIDE],
            ranges: Vec::with_capacity(tile.num_queries),
            segments: Vec::with_capacity(2 * tile.num_queries),
        }
    }
}

/// Attends `tile` over `chunk` and leaves the result in `part`.
pub(super) struct AttendChunk<'a> {
    pub(super) tile: &'a Tile<'a>,
    pub(super) chunk: usize,
    pub(super) scratch: &'a mut Scratch,
    pub(super) part: &'a mut ChunkPart,
}

impl VectorOp for AttendChunk<'_> {
    type Output = ();

    fn reference(self) {
        let head_dim = self.tile.params.head_dim;
        let values = self.part.values.chunks_exact_mut(head_dim);
        for ((query, sums), values) in self.part.sums.iter_mut().enumerate().zip(values) {
            if let Some(keys) = self.tile.keys_in_chunk(query, self.chunk) {
                let start = self.chunk * CHUNK_KEYS;
                let keys = start + keys.first..start + keys.end;
                *sums = reference::attend_chunk(self.tile, query, keys, values);
            }
        }
    }

    #[inline(always)]
    fn vector<S: Simd>(self, simd: S) {
        let Self {
            tile,
            chunk,
            scratch,
            part,
        } = self;
        let head_dim = tile.params.head_dim;
        let n = tile.num_queries;
        assert!(n <= S::TILE_QUERIES, "{n} queries in a tile");
        assert_eq!(scratch.q.len(), n * head_dim, "packed queries");
        assert_eq!(scratch.scores.len(), n * SCORE_STRIDE, "scores of a tile");
        assert_eq!(part.values.len(), n * head_dim, "values of a tile");
        part.values.fill(0.0);
        // First and last keys ascend with the query, so the queries that see part of the chunk are neighbours.
        let keys = |query| tile.keys_in_chunk(query, chunk);
        let Some(first_query) = (0..n).find(|&query| keys(query).is_some()) else {
            return;
        };
        scratch.ranges.clear();
        scratch.ranges.extend((first_query..n).map_while(keys));
        scratch.segments.clear();
        push_segments(&scratch.ranges, &mut scratch.segments);
        let (Some(first), Some(last)) = (scratch.ranges.first(), scratch.ranges.last()) else {
            return;
        };
        let seen = first.first / KV_BLOCK_TOKENS..last.end.div_ceil(KV_BLOCK_TOKENS);
        let blocks = tile.chunk_blocks(chunk, seen.clone());
        let scores = scratch.scores.as_mut_ptr();
        // SAFETY: lengths were asserted above; `chunk_blocks` made the blocks seen valid, and every key range and
        // segment lies in them, in the chunk and in the tile.
        unsafe {
            microkernel::scores(simd, n, &blocks, seen, scratch.q.as_ptr(), scores);
            for (query, range) in (first_query..).zip(&scratch.ranges) {
                let row = scores.add(query * SCORE_STRIDE);
                part.sums[query] = chunk_weights(simd, tile.params.softcap, *range, row);
            }
            for segment in &scratch.segments {
                let query = first_query + segment.first_query;
                let p = scores.add(query * SCORE_STRIDE);
                let values = part.values.as_mut_ptr().add(query * head_dim);
                microkernel::values(simd, segment.num_queries, &blocks, segment.keys, p, values);
            }
        }
    }
}
