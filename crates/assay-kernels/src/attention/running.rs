//! Softmax over chunks: how a chunk, and at the end a sink, joins what came before.

use super::chunk::ChunkPart;
use super::reference;
use super::tile::Tile;
use crate::disjoint::DisjointSlice;
use crate::exp::exp_lanes;
use crate::simd::{Simd, VectorOp};

/// Maximum and sum of one query over the chunks so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Running {
    pub(super) max: f32,
    pub(super) sum: f32,
}

/// A tile's queries over the chunks so far.
pub(super) struct RunningTile {
    running: Vec<Running>,
    /// `[num_queries, head_dim]`.
    values: Vec<f32>,
}

impl RunningTile {
    /// Before any chunk.
    pub(super) fn new(tile: &Tile<'_>) -> Self {
        Self {
            running: vec![
                Running {
                    max: f32::NEG_INFINITY,
                    sum: 0.0
                };
                tile.num_queries
            ],
            values: vec![0.0; tile.num_queries * tile.params.head_dim],
        }
    }

    /// Each query with its running softmax and values.
    fn queries(
        &mut self,
        tile: &Tile<'_>,
    ) -> impl Iterator<Item = (usize, (&mut Running, &mut [f32]))> {
        self.running
            .iter_mut()
            .zip(self.values.chunks_exact_mut(tile.params.head_dim))
            .enumerate()
    }
}

/// Joins `part`, what `chunk` gave, into `joined`; a query that sees no key of the chunk stays as it is.
pub(super) struct JoinChunk<'a> {
    pub(super) tile: &'a Tile<'a>,
    pub(super) chunk: usize,
    pub(super) part: &'a ChunkPart,
    pub(super) joined: &'a mut RunningTile,
}

impl VectorOp for JoinChunk<'_> {
    type Output = ();

    fn reference(self) {
        let head_dim = self.tile.params.head_dim;
        for (query, (running, values)) in self.joined.queries(self.tile) {
            if self.tile.keys_in_chunk(query, self.chunk).is_some() {
                let values_c = &self.part.values[query * head_dim..][..head_dim];
                reference::join(running, values, self.part.sums[query], values_c);
            }
        }
    }

    #[inline(always)]
    fn vector<S: Simd>(self, simd: S) {
        let head_dim = self.tile.params.head_dim;
        for (query, (running, values)) in self.joined.queries(self.tile) {
            if self.tile.keys_in_chunk(query, self.chunk).is_some() {
                let values_c = &self.part.values[query * head_dim..][..head_dim];
                let (max_c, sum_c) = self.part.sums[query];
                let (a, b) = rescale(simd, running, max_c);
                running.sum = sum_c.mul_add(b, running.sum * a);
                let (a, b) = (simd.splat(a), simd.splat(b));
                for at in (0..head_dim).step_by(S::F32_LANES) {
                    // SAFETY: both slices are one head long, a multiple of 16 (`KvLayer::new`).
                    unsafe {
                        let old = simd.mul(simd.load(values.as_ptr().add(at)), a);
                        let new = simd.fma(simd.load(values_c.as_ptr().add(at)), b, old);
                        simd.store(values.as_mut_ptr().add(at), new);
                    }
                }
            }
        }
    }
}

/// Joins the sinks and writes `o / l` of each query.
pub(super) struct Finish<'a> {
    pub(super) tile: &'a Tile<'a>,
    pub(super) joined: RunningTile,
    /// Of the whole batch; the tile's queries are this op's alone.
    pub(super) out: &'a DisjointSlice<'a, f32>,
}

impl VectorOp for Finish<'_> {
    type Output = ();

    fn reference(mut self) {
        for (query, (running, values)) in self.joined.queries(self.tile) {
            // SAFETY: tiles share no query and spans no row (`attention` checks), and a tile is finished once.
            let out = unsafe { self.out.part(self.tile.at(query), values.len()) };
            reference::finish(*running, values, self.tile.sink(query), out);
        }
    }

    #[inline(always)]
    fn vector<S: Simd>(mut self, simd: S) {
        for (query, (running, values)) in self.joined.queries(self.tile) {
            if let Some(logit) = self.tile.sink(query) {
                let (a, b) = rescale(simd, running, logit);
                running.sum = 1.0_f32.mul_add(b, running.sum * a);
                values.iter_mut().for_each(|value| *value *= a);
            }
            // SAFETY: tiles share no query and spans no row (`attention` checks), and a tile is finished once.
            let out = unsafe { self.out.part(self.tile.at(query), values.len()) };
            let sum = simd.splat(running.sum);
            for at in (0..values.len()).step_by(S::F32_LANES) {
                // SAFETY: both slices are one head long, a multiple of 16 (`KvLayer::new`).
                unsafe {
                    let quotient = simd.div(simd.load(values.as_ptr().add(at)), sum);
                    simd.store(out.as_mut_ptr().add(at), quotient);
                }
            }
        }
    }
}

/// Moves to the joint maximum and returns the factors of the old part and of the new.
#[inline(always)]
fn rescale<S: Simd>(simd: S, running: &mut Running, max_c: f32) -> (f32, f32) {
    // A NaN here is a sink's (`chunk_weights`); it must stay.
    let joint = if max_c > running.max || max_c.is_nan() {
        max_c
    } else {
        running.max
    };
    let mut factors = [0.0; 16];
    factors[0] = running.max - joint;
    factors[1] = max_c - joint;
    // SAFETY: no vector is wider than 16 lanes.
    unsafe {
        let exp = exp_lanes(simd, simd.load(factors.as_ptr()));
        simd.store(factors.as_mut_ptr(), exp);
    }
    running.max = joint;
    (factors[0], factors[1])
}
