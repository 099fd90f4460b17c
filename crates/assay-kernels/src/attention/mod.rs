//! Causal attention of packed rows over f16 keys and values in blocks, with GQA, sliding windows, soft-caps and
//! sinks.
//!
//! Class: Exact. A row's output depends on its query and on the keys and values it sees, by absolute position:
//! never on batch mates, on how a prompt was cut into passes, on threads or on which blocks hold the keys.
//!
//! Score `s`: `q` pre-scaled by `rn(q·scale)`, one fma chain over the head ascending. Keys go in chunks of 256 by
//! absolute position; a chunk gives `m_c = max s`, `p = EXP(s - m_c)`, `l_c = SUM32(p)` (lane = position mod 32)
//! and `o_c` = fma chains of `p·v` over keys ascending. Chunks combine ascending into `(m, l, o)`; a sink joins last,
//! as a chunk with `m_c = sink`, `l_c = 1` and no value. The output is `o / l`. A key that a row cannot see takes
//! part in nothing, so an unwritten slot may hold any bits. A NaN score makes the row's head NaN.

mod chunk;
pub mod cuda;
pub(crate) mod golden;
mod kv;
mod microkernel;
mod reference;
mod running;
mod schedule;
mod segment;
mod softmax;
mod tile;

pub use kv::{KV_BLOCK_TOKENS, KvLayer, kv_write};

use std::ops::Range;

use crate::Compute;
use crate::disjoint::DisjointSlice;

/// Keys of one chunk, by absolute position; the grid never moves.
pub const CHUNK_KEYS: usize = 256;

/// What attention needs to know of a layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttentionParams<'a> {
    /// Query heads, a multiple of `num_kv_heads`.
    pub num_heads: usize,
    /// Key and value heads; query head `h` reads head `h / (num_heads / num_kv_heads)`.
    pub num_kv_heads: usize,
    /// Elements of a head, a multiple of 16.
    pub head_dim: usize,
    /// Factor of the query, `1/√head_dim` for most models.
    pub scale: f32,
    /// Sliding window in tokens, the query's own included: a key is visible if `query - key < window`.
    pub window: Option<u32>,
    /// Cap of the scores, positive.
    pub softcap: Option<f32>,
    /// `[num_heads]` logit of each head's sink.
    pub sinks: Option<&'a [f32]>,
}

impl AttentionParams<'_> {
    /// Positions of the keys that a query at `position` sees; never empty.
    fn visible_keys(&self, position: usize) -> Range<usize> {
        let end = position + 1;
        let first = self
            .window
            .map_or(0, |window| end.saturating_sub(window as usize));
        first..end
    }
}

/// The rows of one sequence in a packed batch, and where its keys lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceSpan<'a> {
    /// Its first row in the batch.
    pub first_row: usize,
    /// Its rows, contiguous.
    pub num_rows: usize,
    /// Absolute position of its first row; later rows follow by one.
    pub first_position: usize,
    /// Block of each 16 positions from 0 on, up to its last row's at least.
    pub block_table: &'a [u32],
}

impl SequenceSpan<'_> {
    /// Checks once, for every later access, that rows and blocks exist.
    fn validate(&self, num_blocks: usize, num_tokens: usize) {
        assert!(
            self.first_row <= num_tokens && self.num_rows <= num_tokens - self.first_row,
            "rows {} + {} lie outside the batch's {num_tokens}",
            self.first_row,
            self.num_rows
        );
        let num_needed = (self.first_position + self.num_rows).div_ceil(KV_BLOCK_TOKENS);
        assert!(
            self.block_table.len() >= num_needed,
            "a block table of {} blocks for positions below {}",
            self.block_table.len(),
            self.first_position + self.num_rows
        );
        for &block in &self.block_table[..num_needed] {
            assert!(
                (block as usize) < num_blocks,
                "block {block} of a layer of {num_blocks}"
            );
        }
    }
}

/// Attention of every row in `spans` over the keys already written: `q` and `out` are
/// `[num_tokens, num_heads, head_dim]`. Rows in no span are left as they are.
///
/// # Panics
/// If shapes disagree, a span lies outside the batch or its block table outside the layer, or spans are not
/// in the order of their rows.
pub fn attention(
    cx: &Compute,
    params: &AttentionParams<'_>,
    layer: &KvLayer,
    spans: &[SequenceSpan<'_>],
    q: &[f32],
    out: &mut [f32],
) {
    let num_tokens = validate(params, layer, q, out);
    let mut num_rows_seen = 0;
    for span in spans {
        span.validate(layer.num_blocks(), num_tokens);
        assert!(
            span.num_rows == 0 || span.first_row >= num_rows_seen,
            "spans share rows or are not in the order of their rows"
        );
        num_rows_seen = span.first_row + span.num_rows;
    }
    let tiles = schedule::tiles(cx, params, layer, spans, q);
    let out = DisjointSlice::new(out);
    if schedule::is_worth_splitting(cx, &tiles) {
        schedule::run_chunks(cx, &tiles, &out);
    } else {
        schedule::run_tiles(cx, &tiles, &out);
    }
}

/// Checks shapes and returns the batch's tokens.
fn validate(params: &AttentionParams<'_>, layer: &KvLayer, q: &[f32], out: &[f32]) -> usize {
    assert_eq!(params.head_dim, layer.head_dim(), "head_dim of the layer");
    assert_eq!(
        params.num_kv_heads,
        layer.num_kv_heads(),
        "num_kv_heads of the layer"
    );
    assert!(
        params.num_kv_heads > 0 && params.num_heads.is_multiple_of(params.num_kv_heads),
        "{} heads do not divide over {} KV heads",
        params.num_heads,
        params.num_kv_heads
    );
    assert!(params.window != Some(0), "a window of no keys");
    if let Some(sinks) = params.sinks {
        assert_eq!(sinks.len(), params.num_heads, "one sink a head");
    }
    assert_eq!(q.len(), out.len(), "q and out differ in length");
    let row_len = params.num_heads * params.head_dim;
    assert!(
        row_len > 0 && q.len().is_multiple_of(row_len),
        "q is not whole rows"
    );
    q.len() / row_len
}
