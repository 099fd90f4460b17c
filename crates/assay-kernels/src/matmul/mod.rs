//! `y = W·x` for every block format, by the chains of the numerics contract's section 3.
//!
//! Class: exact. The same bits on every ISA, for any number of threads and whatever rows share the
//! batch. The pieces: `formats` says how a raw block splits, `quants` and `scales` how the parts lie
//! in a packed panel and how each ISA loads them, `panel` where they lie; `reference`, `avx2` and
//! `avx512` are the drivers, generic over the two layouts.

mod arena;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod checksum;
mod corrections;
mod formats;
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
pub use packed::{PackError, PackedMatrix};

use crate::Compute;
use crate::disjoint::DisjointSlice;
use job::Job;

/// Writes `W·x (+ bias)` to `out`, `[num_tokens, n]` row-major.
///
/// `w` is `[n, k]`, `x` is `[num_tokens, k]`, `bias` is `[n]`.
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
    let activations = x.quantized();
    assert_eq!(
        activations.isa(),
        cx.isa,
        "instruction set of the activations"
    );
    let format = w.format();
    let (panels, panel_bytes) = w.panels();
    let job = Job {
        isa: cx.isa,
        panels,
        panel_bytes,
        n: w.n(),
        num_blocks: w.k() / quants::BLOCK,
        activations,
        corrections: &format.corrections(activations),
        bias,
        out: DisjointSlice::new(out),
    };
    let grid = split::Grid::new(&job, cx.pool.num_threads());
    cx.pool.run(grid.num_tasks(), &|index| {
        format.run(&job, grid.task(index))
    });
}

#[cfg(test)]
mod tests;
