//! How a sub-block becomes the quad vectors that a tile of weights is loaded from, and its scales f32.

use super::super::GROUPS;
use super::super::format::{Format, MAX_SUBS, StepScales, Steps, store_quads};
use super::pass::{PREFETCH_BYTES, prefetch};
use crate::matmul::panel::{BLOCKS_PER_STEP, Step};
use crate::matmul::quants::{BLOCK, PANEL_ROWS, QUADS, QuantLayout};
use std::arch::x86_64::*;
use std::marker::PhantomData;

/// Bytes of a sub-block as quad vectors.
const QUAD_BYTES: usize = 64 * QUADS;

/// How a sub-block becomes quad vectors.
pub(super) trait Expand {
    /// Whether both quads and scales were expanded before, quads signed: see [`Ready`].
    const IS_READY: bool = false;

    /// Bytes of a sub-block of `format`.
    fn sub_block_bytes(format: &Format) -> usize;

    /// Where its quad vectors are: written to `out`, or there already.
    ///
    /// # Safety
    /// AVX-512 F, BW; `sub_block` is one of `format`, `out` can be written.
    unsafe fn expand(format: &Format, sub_block: *const u8, out: *mut __m512i) -> *const __m512i;
}

/// By code inside the kernel, which is compiled for layout `Q` alone.
pub(super) struct Inlined<Q>(PhantomData<Q>);

/// By a call: one kernel for all layouts, which puts its registers aside at each.
pub(super) struct Called;

/// Not at all: [`Weights`] were expanded for several tiles of tokens.
pub(super) struct Ready;

impl<Q: QuantLayout> Expand for Inlined<Q> {
    #[inline(always)]
    fn sub_block_bytes(_format: &Format) -> usize {
        Q::SUB_BLOCK_BYTES
    }

    #[inline(always)]
    unsafe fn expand(_format: &Format, sub_block: *const u8, out: *mut __m512i) -> *const __m512i {
        if Q::IS_PLAIN {
            return sub_block.cast();
        }
        // SAFETY: the caller's contract.
        unsafe { store_quads::<Q>(sub_block, out) };
        out
    }
}

impl Expand for Called {
    #[inline(always)]
    fn sub_block_bytes(format: &Format) -> usize {
        format.sub_block_bytes
    }

    #[inline(always)]
    unsafe fn expand(format: &Format, sub_block: *const u8, out: *mut __m512i) -> *const __m512i {
        // SAFETY: the caller's contract.
        unsafe { (format.quads)(sub_block, out) };
        out
    }
}

impl Expand for Ready {
    const IS_READY: bool = true;

    #[inline(always)]
    fn sub_block_bytes(_format: &Format) -> usize {
        QUAD_BYTES
    }

    #[inline(always)]
    unsafe fn expand(_format: &Format, sub_block: *const u8, _out: *mut __m512i) -> *const __m512i {
        sub_block.cast()
    }
}

/// A 64-byte line of quad vectors.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Quad([u8; 64]);

/// Scales of a step, read by whole lines.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct AlignedScales(StepScales);

/// All of K of two row groups, expanded: what tiles of tokens share.
pub(super) struct Weights {
    /// `[group][block][quad]`, signed: less the zero point, so that sums need no correction.
    quads: Vec<Quad>,
    /// `[group][step]`.
    scales: Vec<AlignedScales>,
    num_blocks: usize,
}

impl Weights {
    /// Memory for panels of `num_blocks` 32-blocks; zero, so that the work of a group that is missing is harmless.
    pub(super) fn new(num_blocks: usize) -> Self {
        let num_steps = num_blocks.div_ceil(BLOCKS_PER_STEP);
        Self {
            quads: vec![Quad([0; 64]); GROUPS * num_blocks * QUADS],
            scales: vec![AlignedScales([[[0.0; PANEL_ROWS]; 2]; MAX_SUBS]); GROUPS * num_steps],
            num_blocks,
        }
    }

    /// Expands the panel of `group`, less `zero_point`.
    ///
    /// # Safety
    /// AVX-512 F, BW, DQ, VL; `panel` is one of `format` with as many blocks.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub(super) unsafe fn fill(
        &mut self,
        group: usize,
        format: &Format,
        steps: &Steps,
        panel: &[u8],
        subs_per_block: usize,
        zero_point: u8,
    ) {
        let num_steps = self.num_blocks.div_ceil(BLOCKS_PER_STEP);
        let centre = _mm512_set1_epi8(zero_point.cast_signed());
        let all_quads =
            &mut self.quads[group * self.num_blocks * QUADS..][..self.num_blocks * QUADS];
        let (blocks, _) = all_quads.as_chunks_mut::<QUADS>();
        let scales = &mut self.scales[group * num_steps..][..num_steps];
        for (index, scales) in scales.iter_mut().enumerate() {
            let Step {
                section,
                quants,
                first_block,
                num_blocks,
            } = steps.step(index);
            let blocks = &mut blocks[first_block..][..num_blocks];
            // SAFETY: the caller's contract: a step has its section, then its sub-blocks; a block is eight vectors.
            unsafe {
                prefetch(
                    panel.as_ptr().add(section),
                    PREFETCH_BYTES,
                    quants - section,
                );
                (format.scales)(
                    panel[section..quants].as_ptr(),
                    num_blocks * subs_per_block,
                    &raw mut scales.0,
                );
                for (block, quads) in blocks.iter_mut().enumerate() {
                    let at = quants + block * format.sub_block_bytes;
                    let sub_block = panel[at..][..format.sub_block_bytes].as_ptr();
                    prefetch(sub_block, PREFETCH_BYTES, format.sub_block_bytes);
                    let quads = quads.as_mut_ptr().cast::<__m512i>();
                    (format.quads)(sub_block, quads);
                    if zero_point == 0 {
                        continue;
                    }
                    for i in 0..QUADS {
                        let quad = _mm512_load_si512(quads.add(i));
                        _mm512_store_si512(quads.add(i), _mm512_sub_epi8(quad, centre));
                    }
                }
            }
        }
    }

    /// The first group's quad vectors, the second's [`Weights::second`] bytes on.
    pub(super) fn quads(&self) -> *const u8 {
        self.quads.as_ptr().cast()
    }

    /// Bytes from a group's quad vectors to the next one's.
    pub(super) fn second(&self) -> usize {
        self.num_blocks * QUAD_BYTES
    }

    /// `[group][step]`.
    pub(super) fn scales(&self) -> *const StepScales {
        self.scales.as_ptr().cast()
    }
}

const _: () = assert!(QUAD_BYTES == 16 * BLOCK);
