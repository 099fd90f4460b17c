//! AMX, for batches of at least 32 tokens (`few` is for less): products of 16 tokens × 16 rows × one sub-block by TDPBF16PS, for batches in tile rows.
//!
//! The integers go in as BF16, which holds every one exactly (`256·hi`, `lo`, quants less their
//! centre), and every partial sum is an integer below 2^24, or 256 times one, so the f32 a tile ends
//! with *is* `f32(s_j)`: what is left of the contract's section 3 are its two chains, lanes being rows as in
//! `avx512`. Where a block's sum may be larger, `256·hi` and `lo` are summed apart and joined by
//! one addition, the conversion's only rounding. BF16 at two products a sum is as fast as bytes, whose
//! tiles would be half empty, and leaves no conversion to the vector units.
//!
//! A task takes two row groups at a time: `unpack` writes their quants as tiles; then, for each pair
//! of token tiles, `sums` multiplies a phase of two sub-blocks and `chains` folds it. Phases are
//! short so that the sums stay in the first-level cache beside the streams of operands, and so that
//! the CPU reaches the next phase's products while it folds; larger ones, and a second buffer of
//! sums, were slower.

mod chains;
mod few;
mod product;
mod sums;
mod unpack;

pub(super) use few::run as run_few;

use super::job::{Job, Task};
use super::panel::{BLOCKS_PER_STEP, step};
use super::quants::{BLOCK, PANEL_ROWS, QuantLayout};
use super::scales::ScaleLayout;
use crate::quantize::{ActivationProfile, TILE_ROWS};
use crate::x86::amx::Tiles;
use product::{Joined, Narrow, Product, Split};
use std::mem::MaybeUninit;
use std::ops::Range;
use unpack::{BlockTile, Unpacker};

/// Row groups that share each load of activations.
const GROUPS: usize = 2;
/// 256-blocks unpacked at a time.
const STEPS_PER_CHUNK: usize = 4;
/// Sub-blocks summed before their chains are run.
const PHASE: usize = 2;

/// A sum, accumulator or output per token and row.
type Tile = [[f32; PANEL_ROWS]; TILE_ROWS];

/// What a task keeps near: everything is written before it is read.
#[repr(C, align(64))]
struct Scratch {
    /// `[group][32-block of the chunk]`
    weights: [[BlockTile; STEPS_PER_CHUNK * BLOCKS_PER_STEP]; GROUPS],
    /// `[sub-block of the phase][tile]`
    sums: [[Tile; 4]; PHASE],
    /// Level 1, between the phases of a step.
    acc: [Tile; 4],
    /// Level 2, between the steps of a chunk.
    y: [Tile; 4],
}

/// Runs one task.
pub(super) fn run<Q: QuantLayout, S: ScaleLayout>(job: &Job<'_>, task: Task, zero_point: u8) {
    // SAFETY: kernels::run comes here only for an `Isa` of kind Amx, which exists only on a CPU with
    // AMX, AVX-512 F, BW, DQ and VL, in a process that may use tiles; tasks do not nest, so this
    // thread has no other tiles.
    unsafe {
        match job.activations.profile() {
            ActivationProfile::A8 => run_product::<Q, S, Narrow>(job, task, zero_point),
            ActivationProfile::A16 if unpack::is_split::<Q, S>() => {
                run_product::<Q, S, Split>(job, task, zero_point);
            }
            ActivationProfile::A16 => run_product::<Q, S, Joined>(job, task, zero_point),
        }
    }
}

/// # Safety
/// AMX tiles and the features named; this thread has no tiles.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn run_product<Q: QuantLayout, S: ScaleLayout, P: Product>(
    job: &Job<'_>,
    task: Task,
    zero_point: u8,
) {
    let activations = job.activations;
    let subs_per_row = job.num_blocks * (BLOCK / S::SUB_BLOCK);
    let scales_per_row = if P::WIDE {
        job.num_blocks.div_ceil(BLOCKS_PER_STEP)
    } else {
        job.num_blocks
    };
    // The pointers below walk these by tile, block and sub-block.
    for tile in task.tiles.clone() {
        let bytes = job.num_blocks * P::TILES_PER_BLOCK * size_of::<BlockTile>();
        assert_eq!(size_of_val(activations.tile_words(tile)), bytes);
        assert_eq!(
            activations.tile_scales(tile).len(),
            scales_per_row * TILE_ROWS
        );
    }
    if S::HAS_OFFSET {
        assert!(job.corrections.len() >= task.tiles.end * subs_per_row * TILE_ROWS);
    }
    let center = unpack::center::<Q, S, P>(zero_point);
    let unpacker = Unpacker::<Q>::new(center);
    let mut scratch = MaybeUninit::<Scratch>::uninit();
    let scratch = scratch.as_mut_ptr();
    let num_steps = job.num_blocks.div_ceil(BLOCKS_PER_STEP);
    // SAFETY: the caller vouches for AMX.
    let _tiles = unsafe { Tiles::new(S::SUB_BLOCK) };
    for first_group in task.groups.clone().step_by(GROUPS) {
        let groups = first_group..(first_group + GROUPS).min(task.groups.end);
        for first_step in (0..num_steps).step_by(STEPS_PER_CHUNK) {
            let pass = Pass {
                job,
                groups: groups.clone(),
                steps: first_step..(first_step + STEPS_PER_CHUNK).min(num_steps),
                scratch,
                lift: if S::HAS_OFFSET {
                    f32::from(center)
                } else {
                    0.0
                },
            };
            let (pairs, last) = match task.tiles.len() % P::TOKEN_TILES {
                0 => (task.tiles.clone(), 0),
                _ => (task.tiles.start..task.tiles.end - 1, 1),
            };
            // SAFETY: this function has the CPU features and configured the tiles; the pass lies
            // inside the job, whose arrays hold all of its tiles (asserted above).
            unsafe {
                pass.unpack::<S, Q>(&unpacker);
                if P::TOKEN_TILES == 2 {
                    pass.multiply::<Q, S, P, 2>(pairs.clone());
                } else {
                    pass.multiply::<Q, S, P, 1>(pairs.clone());
                }
                pass.multiply::<Q, S, P, 1>(pairs.end..pairs.end + last);
            }
        }
    }
}

/// One chunk of K of one or two row groups, for all tokens of a task.
struct Pass<'a> {
    job: &'a Job<'a>,
    groups: Range<usize>,
    steps: Range<usize>,
    scratch: *mut Scratch,
    /// What was subtracted from the quants of a format with offsets and belongs to its sums.
    lift: f32,
}

/// Up to `PHASE` sub-blocks of one step, for one or two token tiles.
#[derive(Clone, Copy)]
struct Phase {
    first_tile: usize,
    step: usize,
    /// Within the step.
    first_sub: usize,
    num_subs: usize,
    /// Sub-blocks of the step.
    step_subs: usize,
}

impl Pass<'_> {
    /// Writes the quants of the groups' chunk as tiles.
    ///
    /// # Safety
    /// AVX-512 F, BW; the pass lies inside the job.
    #[inline(always)]
    unsafe fn unpack<S: ScaleLayout, Q: QuantLayout>(&self, unpacker: &Unpacker<Q>) {
        for (index, group) in self.groups.clone().enumerate() {
            let panel = &self.job.panels[group * self.job.panel_bytes..][..self.job.panel_bytes];
            for step_index in self.steps.clone() {
                let step = step::<Q, S>(self.job.num_blocks, step_index);
                for block in 0..step.num_blocks {
                    let quants = &panel[step.quants + block * Q::SUB_BLOCK_BYTES..];
                    let at = (step_index - self.steps.start) * BLOCKS_PER_STEP + block;
                    // SAFETY: the caller vouches for the CPU; `at` is below the chunk's blocks.
                    unsafe {
                        let tile = &raw mut (*self.scratch).weights[index][at];
                        unpacker.unpack(&quants[..Q::SUB_BLOCK_BYTES], tile);
                    }
                }
            }
        }
    }

    /// Every output of `tiles`, `T` token tiles at a time, over the pass's chunk of K.
    ///
    /// # Safety
    /// The tiles are configured for `S`; the features of `run_product`; the weights are unpacked;
    /// `tiles` lies inside the job and is whole `T`s; no other task writes these outputs.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn multiply<Q: QuantLayout, S: ScaleLayout, P: Product, const T: usize>(
        &self,
        tiles: Range<usize>,
    ) {
        for first_tile in tiles.step_by(T) {
            let words: [*const u8; T] = std::array::from_fn(|t| {
                let words = self.job.activations.tile_words(first_tile + t);
                words.as_ptr().cast()
            });
            for index in self.steps.clone() {
                let step = step::<Q, S>(self.job.num_blocks, index);
                let step_subs = step.num_blocks * (BLOCK / S::SUB_BLOCK);
                for first_sub in (0..step_subs).step_by(PHASE) {
                    let phase = Phase {
                        first_tile,
                        step: index,
                        first_sub,
                        num_subs: (step_subs - first_sub).min(PHASE),
                        step_subs,
                    };
                    // SAFETY: the caller's contract; sub-blocks and outputs are those of the phase.
                    unsafe {
                        for i in 0..phase.num_subs {
                            self.sum::<S, P, T>(words, phase, i);
                        }
                        for output in 0..GROUPS * T {
                            self.fold::<Q, S, P>(phase, output);
                        }
                    }
                }
            }
        }
    }
}
