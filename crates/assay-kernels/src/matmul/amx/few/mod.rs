//! AMX for few tokens, and for any number where sums of 16-bit activations are not exact in f32: products of eight
//! tokens × 16 rows × one sub-block by TDPBSUD.
//!
//! A product takes as long for one row of activations as for sixteen, so the `hi` and the `lo` of eight tokens
//! are the rows of one tile and one product gives both sums. A quad vector of weights is a row of a
//! tile as it stands: what is stored as quads needs no unpacking, and the rest only what the dot
//! products of `avx512` need. Common layouts have kernels of their own, the others share some. Sums
//! are exact integers; the two chains are those of `avx512`, lanes being rows.
//!
//! Two row groups share each tile of activations. A block's sums are stored while the next block's are made, and
//! folded while the one after that is, so that nothing waits for the latency of the tiles. Where several tiles of 16-bit
//! integers follow each other, the weights of the two groups are expanded once for all of them, less their zero point: then
//! their sums need no correction.

mod expand;
mod pass;
mod products;

use super::GROUPS;
use super::format::Format;
use crate::matmul::job::{Job, Task};
use crate::matmul::panel::BLOCKS_PER_STEP;
use crate::matmul::quants::{BLOCK, PANEL_ROWS, QuantLayout};
use crate::matmul::scales::ScaleLayout;
use crate::quantize::ActivationProfile;
use crate::x86::amx::Tiles;
use expand::{Called, Expand, Inlined, Ready, Weights};
use pass::{Pass, Rows, Scratch, TOKENS};
use std::arch::x86_64::*;
use std::mem::MaybeUninit;

/// Runs one task of activations in byte rows.
pub(in crate::matmul) fn run<Q: QuantLayout, S: ScaleLayout>(
    job: &Job<'_>,
    task: Task,
    zero_point: u8,
) {
    let format = Format::of::<Q, S>();
    let is_wide = job.activations.profile() == ActivationProfile::A16;
    let run = if job.activations.in_many_byte_rows() {
        pick::<S, Ready>(is_wide)
    } else if Q::IS_COMMON {
        pick::<S, Inlined<Q>>(is_wide)
    } else {
        pick::<S, Called>(is_wide)
    };
    // SAFETY: kernels::run comes here only for an `Isa` of kind Amx, which exists only on a CPU with
    // AMX, AVX-512 F, BW, DQ and VL, in a process that may use tiles; tasks do not nest, so this
    // thread has no other tiles. The format is the job's.
    unsafe { run(job, task, format, zero_point) }
}

/// Runs a task of a job in a format.
///
/// # Safety
/// As [`run_scaled`].
type RunTask = unsafe fn(&Job<'_>, Task, Format, u8);

/// The kernel for scales like `S`.
fn pick<S: ScaleLayout, E: Expand>(is_wide: bool) -> RunTask {
    match (S::SUB_BLOCK, S::HAS_OFFSET, is_wide) {
        (16, false, true) => run_scaled::<16, false, true, E>,
        (16, false, false) => run_scaled::<16, false, false, E>,
        (16, true, true) => run_scaled::<16, true, true, E>,
        (16, true, false) => run_scaled::<16, true, false, E>,
        (_, false, true) => run_scaled::<32, false, true, E>,
        (_, false, false) => run_scaled::<32, false, false, E>,
        (_, true, true) => run_scaled::<32, true, true, E>,
        (_, true, false) => run_scaled::<32, true, false, E>,
    }
}

/// `WIDE` for 16-bit activations, in two parts and scaled once per 256-block.
///
/// # Safety
/// AMX tiles and the features named; this thread has no tiles; `format` is that of the job's panels,
/// has sub-blocks of `SUB_BLOCK`, and offsets if `HAS_OFFSET`, else its quants are stored with the zero point.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn run_scaled<
    const SUB_BLOCK: usize,
    const HAS_OFFSET: bool,
    const WIDE: bool,
    E: Expand,
>(
    job: &Job<'_>,
    task: Task,
    format: Format,
    zero_point: u8,
) {
    let parts = if WIDE { 2 } else { 1 };
    let subs_per_block = BLOCK / SUB_BLOCK;
    let scales_per_row = if WIDE {
        job.num_blocks.div_ceil(BLOCKS_PER_STEP)
    } else {
        job.num_blocks
    };
    let steps = format.steps(job.num_blocks);
    let mut scratch = MaybeUninit::<Scratch>::uninit();
    let mut ready = E::IS_READY.then(|| Weights::new(job.num_blocks));
    let corrections_per_tile = if HAS_OFFSET || !E::IS_READY {
        TOKENS * job.num_blocks * subs_per_block
    } else {
        0
    };
    // SAFETY: the caller vouches for AMX.
    let _tiles = unsafe { Tiles::of_bytes(parts * TOKENS, SUB_BLOCK) };
    for first_group in task.groups.clone().step_by(GROUPS) {
        let num_groups = GROUPS.min(task.groups.end - first_group);
        let panels = &job.panels[first_group * job.panel_bytes..][..num_groups * job.panel_bytes];
        if let Some(ready) = &mut ready {
            for (group, panel) in panels.chunks_exact(job.panel_bytes).enumerate() {
                // Quants of formats with offsets have no more than five bits: they are the same signed.
                let zero_point = if HAS_OFFSET { 0 } else { zero_point };
                // SAFETY: this function has the CPU features; the panels are the format's.
                unsafe { ready.fill(group, &format, &steps, panel, subs_per_block, zero_point) };
            }
        }
        // A missing second group repeats the first, or what `ready` has there, and its sums are not used.
        let (first, second, ready_scales) = match &ready {
            Some(ready) => (ready.quads(), ready.second(), ready.scales()),
            None => (
                panels.as_ptr(),
                (num_groups - 1) * job.panel_bytes,
                std::ptr::null(),
            ),
        };
        for tile in task.tiles.clone() {
            let words = job.activations.tile_words(tile);
            let scales = job.activations.tile_scales(tile);
            let corrections =
                &job.corrections[tile * corrections_per_tile..][..corrections_per_tile];
            // The pointers of the pass walk these by block and sub-block.
            assert_eq!(size_of_val(words), job.num_blocks * parts * TOKENS * BLOCK);
            assert_eq!(scales.len(), scales_per_row * TOKENS);
            let pass = Pass::<SUB_BLOCK, HAS_OFFSET, WIDE> {
                job,
                format,
                steps,
                panels: first,
                second,
                ready_scales,
                words: words.as_ptr().cast(),
                scales: scales.as_ptr(),
                corrections: corrections.as_ptr(),
                scratch: scratch.as_mut_ptr(),
            };
            // SAFETY: this function has the CPU features and configured the tiles; the arrays hold
            // all blocks of the tile (asserted above) and the panels all blocks of their rows.
            let y = unsafe { pass.multiply::<E>() };
            for (index, y) in y.into_iter().take(num_groups).enumerate() {
                // SAFETY: AVX-512 F; tasks are disjoint.
                unsafe { store(job, first_group + index, tile, y) };
            }
        }
    }
}

/// Stores the outputs of a group, with the bias.
///
/// # Safety
/// AVX-512 F; no other task writes these outputs.
#[inline(always)]
unsafe fn store(job: &Job<'_>, group: usize, tile: usize, y: Rows) {
    let first = group * PANEL_ROWS;
    let count = (job.n - first).min(PANEL_ROWS);
    let mask = ((1_u32 << count) - 1) as __mmask16;
    let bias = job.bias.map(|bias| {
        let bias = &bias[first..first + count];
        // SAFETY: the mask covers exactly the slice's elements.
        unsafe { _mm512_maskz_loadu_ps(mask, bias.as_ptr()) }
    });
    for (token, y) in job.activations.tile_tokens(tile).zip(y) {
        // SAFETY: the caller's contract; the mask covers exactly the slice's elements.
        unsafe {
            let y = bias.map_or(y, |bias| _mm512_add_ps(y, bias));
            let output = job.out.part(token * job.n + first, count);
            _mm512_mask_storeu_ps(output.as_mut_ptr(), mask, y);
        }
    }
}
