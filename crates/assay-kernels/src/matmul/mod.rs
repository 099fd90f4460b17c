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
mod exact;
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
use crate::isa::{Isa, IsaKind};
use crate::quantize::BYTE_TILE_TOKENS;
use blocks::BlockMatrix;
use formats::PackedFormat;
use job::Job;
use packed::Storage;

/// Rows of a small batch that are multiplied together: one row more costs as much as so many.
pub fn rows_at_once(isa: Isa) -> usize {
    match isa.0 {
        IsaKind::Scalar | IsaKind::Avx2 | IsaKind::Avx512 => 1,
        IsaKind::Amx => BYTE_TILE_TOKENS,
    }
}

/// One matrix of several that multiply the same rows, and where its outputs go.
#[derive(Debug)]
pub struct Product<'a> {
    /// `[n, k]`.
    pub w: &'a PackedMatrix,
    /// `[n]`.
    pub bias: Option<&'a [f32]>,
    /// `[num_tokens, n]`, row-major.
    pub out: &'a mut [f32],
}

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
    matmul_all(cx, x, &mut [Product { w, bias, out }]);
}

/// [`matmul`] of each product, in one go: the threads meet once for all of them.
///
/// # Panics
/// As [`matmul`].
pub fn matmul_all(cx: &Compute, x: &Activations<'_>, products: &mut [Product<'_>]) {
    let mut quantized = Vec::with_capacity(products.len());
    for Product { w, bias, out } in products {
        assert_eq!(x.k(), w.k(), "K of the input and of the matrix");
        assert_eq!(out.len(), x.num_tokens() * w.n(), "length of the output");
        if let Some(bias) = bias {
            assert_eq!(bias.len(), w.n(), "length of the bias");
        }
        match w.storage() {
            Storage::Blocks(blocks) => quantized.push(BlockProduct {
                blocks,
                n: w.n(),
                bias: *bias,
                out: DisjointSlice::new(out),
            }),
            Storage::Floats(floats) => float_matmul(cx, floats, x.rows(), *bias, out),
        }
    }
    if !quantized.is_empty() {
        block_matmul(cx, x, quantized);
    }
}

/// A [`Product`] of a quantised matrix; its shapes are checked.
struct BlockProduct<'a> {
    blocks: &'a BlockMatrix,
    n: usize,
    bias: Option<&'a [f32]>,
    out: DisjointSlice<'a, f32>,
}

fn block_matmul(cx: &Compute, x: &Activations<'_>, products: Vec<BlockProduct<'_>>) {
    let formats: Vec<_> = products.iter().map(|p| p.blocks.format()).collect();
    let activations = |format: &dyn PackedFormat| {
        let activations = x.quantized(format.operands(x.profile()));
        assert_eq!(
            activations.isa(),
            cx.isa,
            "instruction set of the activations"
        );
        activations
    };
    let corrections: Vec<Vec<u32>> = formats
        .iter()
        .map(|format| format.corrections(activations(*format)))
        .collect();
    let jobs: Vec<Job<'_>> = products
        .into_iter()
        .zip(formats.iter().zip(&corrections))
        .map(|(product, (format, corrections))| Job {
            isa: cx.isa,
            panels: product.blocks.panels(),
            panel_bytes: product.blocks.panel_bytes(),
            n: product.n,
            num_blocks: x.k() / quants::BLOCK,
            activations: activations(*format),
            corrections,
            bias: product.bias,
            out: product.out,
        })
        .collect();
    let grids = split::Grids::new(&jobs, cx.pool.num_threads());
    cx.pool.run(grids.num_tasks(), &|index| {
        let (job, task) = grids.task(index);
        formats[job].run(&jobs[job], task);
    });
}

#[cfg(test)]
mod tests;
