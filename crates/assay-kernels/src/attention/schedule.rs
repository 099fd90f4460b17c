//! Which tiles a batch makes and how they are spread over threads. Nothing here can move a bit.

use super::chunk::{AttendChunk, ChunkPart, Scratch};
use super::running::{Finish, JoinChunk, RunningTile};
use super::tile::Tile;
use super::{AttentionParams, KvLayer, SequenceSpan};
use crate::Compute;
use crate::disjoint::DisjointSlice;
use crate::isa::{Isa, IsaKind};
use crate::simd::dispatch;

/// Tiles for each thread below which tiles are cut by chunks.
const TILES_PER_THREAD: usize = 4;
/// Most f32 kept for chunks that wait to be joined.
const MAX_PART_VALUES: usize = 1 << 24;

/// The tiles of a batch, each of queries that share a KV head, no larger than `isa` likes and evenly cut.
pub(super) fn tiles<'a>(
    cx: &Compute,
    params: &'a AttentionParams<'a>,
    layer: &'a KvLayer,
    spans: &'a [SequenceSpan<'a>],
    q: &'a [f32],
) -> Vec<Tile<'a>> {
    let mut tiles = Vec::new();
    for span in spans {
        let num_queries = span.num_rows * (params.num_heads / params.num_kv_heads);
        let num_tiles = num_queries.div_ceil(tile_queries(cx.isa));
        for kv_head in 0..params.num_kv_heads {
            for index in 0..num_tiles {
                let first_query = index * num_queries / num_tiles;
                let end_query = (index + 1) * num_queries / num_tiles;
                let num_queries = end_query - first_query;
                tiles.push(Tile {
                    params,
                    layer,
                    span,
                    q,
                    kv_head,
                    first_query,
                    num_queries,
                });
            }
        }
    }
    tiles
}

fn tile_queries(isa: Isa) -> usize {
    match isa.0 {
        IsaKind::Scalar | IsaKind::Avx512 | IsaKind::Amx => 24,
        IsaKind::Avx2 => 6,
    }
}

/// Whether threads would idle if each took whole tiles.
pub(super) fn is_worth_splitting(cx: &Compute, tiles: &[Tile<'_>]) -> bool {
    let num_threads = cx.pool.num_threads();
    let num_chunks: usize = tiles.iter().map(|tile| tile.chunks().len()).sum();
    let num_values: usize = tiles
        .iter()
        .map(|tile| tile.chunks().len() * tile.num_queries * (tile.params.head_dim + 2))
        .sum();
    num_threads > 1
        && tiles.len() < TILES_PER_THREAD * num_threads
        && num_chunks > tiles.len()
        && num_values <= MAX_PART_VALUES
}

/// One task a tile.
pub(super) fn run_tiles(cx: &Compute, tiles: &[Tile<'_>], out: &DisjointSlice<'_, f32>) {
    cx.pool.run(tiles.len(), &|task| {
        // Later tiles see more keys: they go first, so that no thread is left alone with one at the end.
        let tile = &tiles[tiles.len() - 1 - task];
        let (mut scratch, mut part) = (Scratch::new(tile), ChunkPart::new(tile));
        let mut joined = RunningTile::new(tile);
        for chunk in tile.chunks() {
            let (scratch, part) = (&mut scratch, &mut part);
            dispatch(
                cx.isa,
                AttendChunk {
                    tile,
                    chunk,
                    scratch,
                    part,
                },
            );
            dispatch(
                cx.isa,
                JoinChunk {
                    tile,
                    chunk,
                    part,
                    joined: &mut joined,
                },
            );
        }
        dispatch(cx.isa, Finish { tile, joined, out });
    });
}

/// One task a chunk of a tile, then one a tile to join them, in the order of [`run_tiles`].
pub(super) fn run_chunks(cx: &Compute, tiles: &[Tile<'_>], out: &DisjointSlice<'_, f32>) {
    let mut tasks = Vec::new();
    let mut first_tasks = Vec::with_capacity(tiles.len());
    for tile in tiles {
        first_tasks.push(tasks.len());
        tasks.extend(tile.chunks().map(|chunk| (tile, chunk)));
    }
    let mut parts: Vec<ChunkPart> = tasks.iter().map(|(tile, _)| ChunkPart::new(tile)).collect();
    cx.pool.for_each_chunk(&mut parts, 1, |task, part| {
        let (tile, chunk) = tasks[task];
        let (scratch, part) = (&mut Scratch::new(tile), &mut part[0]);
        dispatch(
            cx.isa,
            AttendChunk {
                tile,
                chunk,
                scratch,
                part,
            },
        );
    });
    cx.pool.run(tiles.len(), &|index| {
        let tile = &tiles[index];
        let mut joined = RunningTile::new(tile);
        for (chunk, part) in tile.chunks().zip(&parts[first_tasks[index]..]) {
            dispatch(
                cx.isa,
                JoinChunk {
                    tile,
                    chunk,
                    part,
                    joined: &mut joined,
                },
            );
        }
        dispatch(cx.isa, Finish { tile, joined, out });
    });
}
