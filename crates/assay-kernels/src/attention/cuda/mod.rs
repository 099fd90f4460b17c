//! Keys and values on a device, and attention over them.

mod kv;

pub use kv::DeviceKvLayer;

use std::ffi::c_void;

use cudarc::driver::DeviceRepr;

use super::{AttentionParams, CHUNK_KEYS, KV_BLOCK_TOKENS, SequenceSpan};
use crate::cuda::{Cuda, DeviceBuffer, Grid, launch};
use crate::quantize::cuda::{DeviceActivations, Integers};
use crate::rope::RopeStyle;
use crate::rope::cuda::DeviceRopeTable;

/// Longest head: a thread is an element of it.
pub const MAX_HEAD_DIM: usize = 256;

/// Pairs of (row, query head) of the widest tiles.
const WIDE_PAIRS: usize = 64;
/// Shared memory of those kernels, for heads of 64 and of 128 (`WideShared`).
const WIDE_BYTES: [usize; 2] = [94_144, 110_528];

/// Query heads of a tile of `attention_decode`, and bytes that it leaves between blocks of keys.
const DECODE_PAIRS: usize = 2;
const DECODE_KEY_PAD: usize = 32;

/// Elements that are turned to integers together.
const STEP: usize = 256;

/// Longest head of which a chunk is staged.
const MAX_STAGED_DIM: usize = 128;

/// The rows of one pass as the kernels read them: where each is, where its keys go, what it attends to.
#[derive(Debug, Default)]
pub struct DeviceSpans {
    num_rows: usize,
    /// One past the largest position.
    end_position: usize,
    /// Blocks that the tables name are below it.
    end_block: usize,
    /// `[num_rows]`.
    positions: DeviceBuffer<u32>,
    /// `[num_rows]` block · 16 + position mod 16.
    slots: DeviceBuffer<u32>,
    /// Block tables, one after another.
    tables: DeviceBuffer<u32>,
    /// Where the table of each span begins.
    table_starts: Vec<usize>,
    /// First row, rows and first position of each span.
    spans: Vec<[usize; 3]>,
    tiles: DeviceBuffer<Tile>,
    sums: DeviceBuffer<f32>,
    values: DeviceBuffer<f32>,
    /// Blocks of threads that have ended, by row and 256 elements of its heads; zero between launches.
    arrivals: DeviceBuffer<u32>,
    /// The heads of the model, once attention has met them: tiles are then made with the rows.
    heads: Option<Heads>,
    plan: Option<Plan>,
}

impl DeviceSpans {
    /// Takes the rows of `spans`, which together are rows `0..num_rows` in order.
    ///
    /// # Panics
    /// If they are not, or a block table is too short.
    pub fn set(&mut self, cuda: &Cuda, spans: &[SequenceSpan<'_>]) {
        let (mut positions, mut slots, mut tables) = (Vec::new(), Vec::new(), Vec::new());
        self.table_starts.clear();
        self.spans.clear();
        self.plan = None;
        for span in spans {
            assert_eq!(span.first_row, positions.len(), "spans follow each other");
            let end = span.first_position + span.num_rows;
            let num_blocks = end.div_ceil(KV_BLOCK_TOKENS);
            self.table_starts.push(tables.len());
            self.spans
                .push([span.first_row, span.num_rows, span.first_position]);
            tables.extend_from_slice(&span.block_table[..num_blocks]);
            for position in span.first_position..end {
                let block = span.block_table[position / KV_BLOCK_TOKENS];
                positions.push(position as u32);
                slots.push(block * KV_BLOCK_TOKENS as u32 + (position % KV_BLOCK_TOKENS) as u32);
            }
        }
        self.num_rows = positions.len();
        self.end_position = positions.iter().max().map_or(0, |&last| last as usize + 1);
        self.end_block = tables.iter().max().map_or(0, |&last| last as usize + 1);
        self.positions.fill(cuda, &positions);
        self.slots.fill(cuda, &slots);
        self.tables.fill(cuda, &tables);
        if let Some(heads) = self.heads {
            self.plan(cuda, heads);
        }
    }

    /// `[num_rows]` absolute positions.
    pub fn positions(&self) -> &DeviceBuffer<u32> {
        &self.positions
    }

    /// One past the largest position.
    pub fn end_position(&self) -> usize {
        self.end_position
    }

    /// What decides the launches of a pass over these rows, beside the model: equal shapes launch alike. `None` until
    /// attention has met the model's heads.
    pub fn launch_shape(&self) -> Option<[usize; 3]> {
        let plan = self.plan?;
        let num_tiles = 2 * plan.num_tiles + usize::from(plan.is_decode);
        Some([self.num_rows, num_tiles, plan.num_chunks])
    }

    /// How attention is launched for `heads`; cuts the rows' (row, head) pairs into tiles.
    fn plan(&mut self, cuda: &Cuda, heads: Heads) -> Plan {
        if let (Some(plan), true) = (self.plan, self.heads == Some(heads)) {
            return plan;
        }
        let Heads {
            group,
            num_kv_heads,
            head_dim,
        } = heads;
        // Few rows: every chunk is a block of threads of its own, or most of the device would idle.
        let is_split = self.num_rows * num_kv_heads < 4 * cuda.num_multiprocessors();
        // Tiles of 64 pairs take two thirds of the time of others, where there are enough for the device.
        let is_wide = cuda.is_hopper()
            && matches!(head_dim, 64 | 128)
            && (self.num_rows * group).div_ceil(WIDE_PAIRS) * num_kv_heads
                >= cuda.num_multiprocessors();
        let num_chunks = self.end_position.div_ceil(CHUNK_KEYS);
        // Sequences of one row each, while there are too few of them to fill the device with larger tiles.
        let num_blocks = self.num_rows * num_kv_heads * group.div_ceil(DECODE_PAIRS) * num_chunks;
        let is_decode = is_split
            && cuda.is_hopper()
            && head_dim <= MAX_STAGED_DIM
            && self.spans.iter().all(|&[_, num_rows, _]| num_rows == 1)
            && num_blocks <= 4 * cuda.num_multiprocessors();
        let pairs = match (is_split, group) {
            _ if is_decode => DECODE_PAIRS,
            (true, ..=4) => 4,
            (true, ..=8) => 8,
            (false, _) if is_wide => WIDE_PAIRS,
            _ => 16,
        };
        let mut tiles = Vec::new();
        for (&[first_row, num_rows, first_position], &table) in
            self.spans.iter().zip(&self.table_starts)
        {
            for first_pair in (0..num_rows * group).step_by(pairs) {
                tiles.push(Tile {
                    first_row: first_row as i32,
                    first_position: first_position as i32,
                    first_pair: first_pair as i32,
                    num_pairs: pairs.min(num_rows * group - first_pair) as i32,
                    table: table as i32,
                });
            }
        }
        // Later positions see more keys: they go first, so that the last to end are short.
        tiles.reverse();
        self.tiles.fill(cuda, &tiles);
        let plan = Plan {
            is_split,
            is_decode,
            pairs,
            num_tiles: tiles.len(),
            num_chunks,
        };
        let num_steps = (group * num_kv_heads * head_dim).div_ceil(STEP);
        if is_decode && self.arrivals.len() < self.num_rows * num_steps {
            let roomy = (self.num_rows * num_steps).next_power_of_two();
            self.arrivals.fill(cuda, &vec![0; roomy]);
        }
        (self.heads, self.plan) = (Some(heads), Some(plan));
        plan
    }
}

/// What tiles depend on beside the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Heads {
    /// Query heads of a KV head.
    group: usize,
    num_kv_heads: usize,
    head_dim: usize,
}

/// How attention over some rows is launched.
#[derive(Clone, Copy, Debug)]
struct Plan {
    /// Chunks are blocks of threads of their own and are joined afterwards.
    is_split: bool,
    /// Each row is a sequence's only one: chunks are joined by the kernel itself.
    is_decode: bool,
    /// Pairs of a tile at most.
    pairs: usize,
    num_tiles: usize,
    num_chunks: usize,
}

/// `AttentionTile` of the kernels.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Tile {
    first_row: i32,
    first_position: i32,
    first_pair: i32,
    num_pairs: i32,
    table: i32,
}

// SAFETY: plain integers in C order, as the kernel declares them.
unsafe impl DeviceRepr for Tile {}

/// `AttentionLayer` of the kernels.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Layer {
    k: u64,
    v: u64,
    sinks: u64,
    num_heads: i32,
    num_kv_heads: i32,
    head_dim: i32,
    scale: f32,
    window: i32,
    softcap: f32,
}

// SAFETY: plain numbers in C order, as the kernel declares them.
unsafe impl DeviceRepr for Layer {}

const _: () = assert!(size_of::<Layer>() == 48 && size_of::<*const c_void>() == 8);

/// A block of threads for each head of each row.
fn heads_of_rows(num_heads: usize, num_rows: usize) -> Grid {
    Grid {
        blocks: [num_heads, num_rows, 1],
        ..Grid::new(0, 64)
    }
}

/// Stores K (after RoPE) and V of every row, `[num_rows, num_kv_heads, head_dim]` each, as f16.
///
/// # Panics
/// If a length does not fit, or a row's block is not the layer's.
pub fn kv_write(
    cuda: &Cuda,
    layer: &mut DeviceKvLayer,
    spans: &DeviceSpans,
    k: &DeviceBuffer<f32>,
    v: &DeviceBuffer<f32>,
) {
    let len = spans.num_rows * layer.num_kv_heads * layer.head_dim;
    assert_eq!((k.len(), v.len()), (len, len), "rows of k and v");
    assert!(
        spans.end_block <= layer.num_blocks,
        "a block of the layer's"
    );
    let kernel = &cuda.kernels.kv_write;
    // SAFETY: a row's slot lies in the layer, whose blocks hold every head, and k and v have the rows.
    unsafe {
        launch!(
            cuda, kernel, heads_of_rows(layer.num_kv_heads, spans.num_rows);
            layer.k.ptr(cuda), layer.v.ptr(cuda), layer.num_kv_heads as i32, layer.head_dim as i32,
            spans.slots.ptr(cuda), k.ptr(cuda), v.ptr(cuda),
        );
    }
}

/// Rotates q and k of every row to its position, where they stand, then does what [`kv_write`] does.
///
/// # Panics
/// If a length does not fit, a position is past the table, or a row's block is not the layer's.
pub fn rope_kv_write(
    cuda: &Cuda,
    (table, style): (&DeviceRopeTable, RopeStyle),
    layer: &mut DeviceKvLayer,
    spans: &DeviceSpans,
    num_heads: usize,
    [q, k]: [&mut DeviceBuffer<f32>; 2],
    v: &DeviceBuffer<f32>,
) {
    let len = spans.num_rows * layer.num_kv_heads * layer.head_dim;
    assert_eq!((k.len(), v.len()), (len, len), "rows of k and v");
    assert_eq!(
        q.len(),
        spans.num_rows * num_heads * layer.head_dim,
        "rows of q"
    );
    assert!(
        spans.end_block <= layer.num_blocks,
        "a block of the layer's"
    );
    assert!(
        table.rotary_dims() <= layer.head_dim && spans.end_position <= table.num_positions(),
        "rope: positions below {} in a table of {}",
        spans.end_position,
        table.num_positions()
    );
    let (kernel, rotation) = (&cuda.kernels.rope_kv_write, table.rotation(cuda, style));
    // SAFETY: the table has every position; a row's slot lies in the layer, whose blocks hold every head; q, k and v
    // have the rows.
    unsafe {
        launch!(
            cuda, kernel, heads_of_rows(num_heads + layer.num_kv_heads, spans.num_rows);
            rotation, spans.positions.ptr(cuda), spans.slots.ptr(cuda), num_heads as i32,
            layer.num_kv_heads as i32, layer.head_dim as i32, q.ptr(cuda), k.ptr(cuda), v.ptr(cuda),
            layer.k.ptr(cuda), layer.v.ptr(cuda),
        );
    }
}

/// Attention of every row over the keys already written: `q` and `out` are `[num_rows, num_heads, head_dim]`, `sinks`
/// `[num_heads]`; `params.sinks` is not read. The rows' integers go to `integers`, if they are wanted.
///
/// # Panics
/// If shapes disagree, or a row's block is not the layer's.
pub fn attention(
    cuda: &Cuda,
    (params, sinks): (&AttentionParams<'_>, Option<&DeviceBuffer<f32>>),
    layer: &DeviceKvLayer,
    spans: &mut DeviceSpans,
    q: &DeviceBuffer<f32>,
    out: &mut DeviceBuffer<f32>,
    integers: Option<&mut DeviceActivations>,
) {
    let &AttentionParams {
        num_heads,
        num_kv_heads,
        head_dim,
        ..
    } = params;
    assert_eq!(
        (num_kv_heads, head_dim),
        (layer.num_kv_heads, layer.head_dim),
        "heads of the layer"
    );
    assert!(
        num_kv_heads > 0 && num_heads.is_multiple_of(num_kv_heads),
        "{num_heads} heads do not divide over {num_kv_heads} KV heads"
    );
    assert!(params.window != Some(0), "a window of no keys");
    assert!(
        spans.end_block <= layer.num_blocks,
        "a block of the layer's"
    );
    let len = spans.num_rows * num_heads * head_dim;
    assert_eq!((q.len(), out.len()), (len, len), "rows of q and out");
    if let Some(sinks) = sinks {
        assert_eq!(sinks.len(), num_heads, "one sink a head");
    }
    let described = Layer {
        k: layer.k.ptr(cuda),
        v: layer.v.ptr(cuda),
        sinks: sinks.map_or(0, |sinks| sinks.ptr(cuda)),
        num_heads: num_heads as i32,
        num_kv_heads: num_kv_heads as i32,
        head_dim: head_dim as i32,
        scale: params.scale,
        // A window longer than any position sees all keys, as none does.
        window: params
            .window
            .map_or(0, |window| i32::try_from(window).unwrap_or(0)),
        softcap: params.softcap.unwrap_or(0.0),
    };
    let group = num_heads / num_kv_heads;
    let kernels = &cuda.kernels;
    let Plan {
        is_split,
        is_decode,
        pairs,
        num_tiles,
        num_chunks,
    } = spans.plan(
        cuda,
        Heads {
            group,
            num_kv_heads,
            head_dim,
        },
    );
    let parts = match is_split {
        true => spans.num_rows * num_heads * num_chunks,
        false => 0,
    };
    spans.sums.sized(cuda, 2 * parts);
    spans.values.sized(cuda, parts * head_dim);
    let n = num_heads * head_dim;
    if is_decode {
        let integers = integers.map_or(Integers::NONE, |integers| {
            integers.place(cuda, spans.num_rows, n)
        });
        let num_blocks = CHUNK_KEYS / KV_BLOCK_TOKENS;
        let block_bytes = head_dim * KV_BLOCK_TOKENS * size_of::<u16>();
        let grid = Grid {
            blocks: [num_tiles, num_kv_heads, num_chunks],
            threads: CHUNK_KEYS,
            shared_bytes: num_blocks * (2 * block_bytes + DECODE_KEY_PAD)
                + DECODE_PAIRS * head_dim * size_of::<f32>(),
        };
        // SAFETY: `Layer` and `Tile` are the kernel's; every row's block table leads to blocks of the layer; q, out, the
        // integers and the scratch hold every row, head and chunk; arrivals hold every row and 256 elements.
        unsafe {
            launch!(
                cuda, &kernels.attention_decode, grid;
                described, spans.tiles.ptr(cuda), spans.tables.ptr(cuda), q.ptr(cuda), num_chunks as i32,
                spans.sums.ptr(cuda), spans.values.ptr(cuda), spans.arrivals.ptr(cuda), out.ptr(cuda), integers,
            );
        }
        return;
    }
    if pairs == WIDE_PAIRS {
        let (kernel, shared_bytes) = match head_dim {
            64 => (&kernels.attention_wide_64, WIDE_BYTES[0]),
            _ => (&kernels.attention_wide_128, WIDE_BYTES[1]),
        };
        let grid = Grid {
            blocks: [num_tiles, num_kv_heads, 1],
            threads: CHUNK_KEYS,
            shared_bytes,
        };
        // SAFETY: as below.
        unsafe {
            launch!(
                cuda, kernel, grid;
                described, spans.tiles.ptr(cuda), spans.tables.ptr(cuda), q.ptr(cuda), out.ptr(cuda),
            );
        }
    } else {
        // A chunk of keys and values in shared memory, where it fits.
        let is_staged = is_split && cuda.is_hopper() && head_dim <= MAX_STAGED_DIM;
        let kernel = match (is_split, is_staged, pairs) {
            (true, true, 4) => &kernels.attention_staged_4,
            (true, true, 8) => &kernels.attention_staged_8,
            (true, true, _) => &kernels.attention_staged_16,
            (true, false, 4) => &kernels.attention_split_4,
            (true, false, 8) => &kernels.attention_split_8,
            (true, false, _) => &kernels.attention_split_16,
            (false, ..) => &kernels.attention_whole_16,
        };
        let staged_bytes = match is_staged {
            true => 2 * CHUNK_KEYS * head_dim * size_of::<u16>(),
            false => 0,
        };
        let grid = Grid {
            blocks: [
                num_tiles,
                num_kv_heads,
                if is_split { num_chunks } else { 1 },
            ],
            threads: CHUNK_KEYS,
            shared_bytes: head_dim * pairs * size_of::<f32>() + staged_bytes,
        };
        // SAFETY: `Layer` and `Tile` are the kernel's; every row's block table leads to blocks of the layer; q, out and,
        // where chunks are split, the scratch hold every row, head and chunk.
        unsafe {
            launch!(
                cuda, kernel, grid;
                described, spans.tiles.ptr(cuda), spans.tables.ptr(cuda), q.ptr(cuda), num_chunks as i32,
                spans.sums.ptr(cuda), spans.values.ptr(cuda), out.ptr(cuda),
            );
        }
    }
    if !is_split {
        if let Some(integers) = integers {
            integers.quantize(cuda, out, num_heads * head_dim);
        }
        return;
    }
    let integers = integers.map_or(Integers::NONE, |integers| {
        integers.place(cuda, spans.num_rows, n)
    });
    let grid = Grid {
        blocks: [n.div_ceil(256), spans.num_rows, 1],
        ..Grid::new(0, 32)
    };
    // SAFETY: the scratch holds every row, head and chunk that the kernel before wrote; out and the integers have every
    // row of `n`, which is a multiple of 16.
    unsafe {
        launch!(
            cuda, &kernels.attention_join, grid;
            described, spans.positions.ptr(cuda), num_chunks as i32, spans.sums.ptr(cuda),
            spans.values.ptr(cuda), out.ptr(cuda), integers,
        );
    }
}
