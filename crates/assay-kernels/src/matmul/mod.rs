//! `y = W·x` for every block format, by the chains of the numerics contract's section 3.
//!
//! Class: exact. The same bits on every ISA, for any number of threads and whatever rows share the
//! batch. The pieces: `formats` says how a raw block splits, `quants` and `scales` how the parts lie
//! in a packed panel and how each ISA loads them, `panel` where they lie; `reference`, `avx2`,
//! `avx512` and `amx` are the drivers, generic over the two layouts.

#[cfg(target_arch = "x86_64")]
mod amx;
mod arena;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod blocks;
mod checksum;
mod corrections;
pub mod cuda;
mod formats;
pub(crate) mod golden;
mod input;
mod job;
mod kernels;
mod packed;
mod panel;
mod quants;
mod reference;
mod scales;
mod split;

pub use arena::WeightArena;
pub use input::Activations;
pub use packed::{LAYOUT_VERSION, PackError, PackedMatrix, supported_types};

use crate::Compute;
use crate::disjoint::DisjointSlice;
use crate::float_matmul::float_matmul;
use blocks::BlockMatrix;
use job::Job;
use packed::Storage;

/// Writes `W·x (+ bias)` to `out`, `[num_tokens, n]` row-major.
///
/// `w` is `[n, k]`, `x` is `[num_tokens, k]`, `bias` is `[n]`. Quantised matrices multiply the
/// integers of `x`, float matrices its f32 rows.
///
/// # Panics
/// When the shapes do not match, or `x` was made for another instruction set than `cx` has.
pub fn matmul(
    cx: &Compute,
    w: &PackedMatrix,
    x: &Activations<'_>,
    bias: Option<&[f32]>,
    out: &mut [f32],
) {
    assert_eq!(x.k(), w.k(), "K of the input and of the matrix");
    assert_eq!(out.len(), x.num_tokens() * w.n(), "length of the output");
    if let Some(bias) = bias {
        assert_eq!(bias.len(), w.n(), "length of the bias");
    }
    match w.storage() {
        Storage::Blocks(blocks) => block_matmul(cx, blocks, w.n(), x, bias, out),
        Storage::Floats(floats) => float_matmul(cx, floats, x.rows(), bias, out),
    }
}

/// The product with a quantised matrix; shapes are checked.
fn block_matmul(
    cx: &Compute,
    w: &BlockMatrix,
    n: usize,
    x: &Activations<'_>,
    bias: Option<&[f32]>,
    out: &mut [f32],
) {
    let activations = x.quantized();
    assert_eq!(
        activations.isa(),
        cx.isa,
        "instruction set of the activations"
    );
    let job = Job {
        isa: cx.isa,
        panels: w.panels(),
        panel_bytes: w.panel_bytes(),
        n,
        num_blocks: x.k() / quants::BLOCK,
        activations,
        corrections: &w.format().corrections(activations),
        bias,
        out: DisjointSlice::new(out),
    };
    let grid = split::Grid::new(&job, cx.pool.num_threads());
    cx.pool.run(grid.num_tasks(), &|index| {
        w.format().run(&job, grid.task(index))
    });
}

#[cfg(test)]
mod tests;
