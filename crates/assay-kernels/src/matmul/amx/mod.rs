//! AMX, for batches of at least 41 tokens (`few` is for less): products of 16 tokens × 16 rows × one sub-block by TDPBF16PS, for batches in tile rows.
//!
//! The integers go in as BF16, which holds every one exactly (`256·hi`, `lo`, quants less their
//! centre), and every partial sum is an integer below 2^24, or 256 times one, so the f32 a tile ends
//! with *is* `f32(s_j)`: what is left of the contract's section 3 are its two chains, lanes being rows as in
//! `avx512`. BF16 at two products a sum is as fast as bytes, whose tiles would be half empty, and leaves no
//! conversion to the vector units. Where a block's sum of 16-bit activations may be larger, bytes are faster for
//! every batch (`few`): apart, the sums of `256·hi` and of `lo` are as many as those of bytes.
//!
//! A task takes two row groups at a time: `expand` writes their quants as tiles and their scales as
//! f32 (`format` has the functions that know how); then, for each pair
//! of token tiles, `sums` multiplies a phase of two sub-blocks and `chains` folds it. Phases are
//! short so that the sums stay in the first-level cache beside the streams of operands, and so that
//! the CPU reaches the next phase's products while it folds; larger ones, and a second buffer of
//! sums, were slower, however sums and chains were interleaved: with nothing else on the core the sums take
//! 26 ns of an output's 39, the chains 11, and the two do not overlap.

mod chains;
mod few;
mod format;
mod product;
mod sums;
mod unpack;

pub(super) use few::run as run_few;

use super::exact::has_exact_sums;
use super::job::{Job, Task};
use super::panel::BLOCKS_PER_STEP;
use super::quants::{BLOCK, PANEL_ROWS, QuantLayout};
use super::scales::ScaleLayout;
use crate::quantize::{ActivationProfile, TILE_ROWS};
use crate::x86::amx::Tiles;
use format::{Format, StepScales, Steps};
use product::{Joined, Narrow, Product};
use std::mem::MaybeUninit;
use std::ops::Range;
use unpack::{Bf16Quants, BlockTile};

/// Row groups that share each load of activations.
const GROUPS: usize = 2;
/// Token tiles at once: with the row groups they fill the four tiles of sums.
const TOKEN_TILES: usize = 2;
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
    /// `[group][step of the chunk]`
    scales: [[StepScales; STEPS_PER_CHUNK]; GROUPS],
    /// `[sub-block of the phase][tile]`
    sums: [[Tile; 4]; PHASE],
    /// Level 1, between the phases of a step.
    acc: [Tile; 4],
    /// Level 2, between the steps of a chunk.
    y: [Tile; 4],
}

/// Runs one task.
pub(super) fn run<Q: QuantLayout, S: ScaleLayout>(job: &Job<'_>, task: Task, zero_point: u8) {
    let is_wide = job.activations.profile() == ActivationProfile::A16;
    assert!(
        !is_wide || has_exact_sums::<Q, S>(),
        "activations for bytes"
    );
    let center = if is_wide {
        unpack::center::<Q, S, Joined>(zero_point)
    } else {
        unpack::center::<Q, S, Narrow>(zero_point)
    };
    let format = Format::of::<Q, S>();
    let weights = Weights {
        steps: format.steps(job.num_blocks),
        format,
        quants: Bf16Quants::new(Q::BITS, center),
        lift: if S::HAS_OFFSET {
            f32::from(center)
        } else {
            0.0
        },
    };
    let run = match (S::SUB_BLOCK, S::HAS_OFFSET) {
        (16, false) => run_scaled::<16, false>,
        (16, true) => run_scaled::<16, true>,
        (_, false) => run_scaled::<32, false>,
        (_, true) => run_scaled::<32, true>,
    };
    // SAFETY: kernels::run comes here only for an `Isa` of kind Amx, which exists only on a CPU with
    // AMX, AVX-512 F, BW, DQ and VL, in a process that may use tiles; tasks do not nest, so this
    // thread has no other tiles. The weights are those of the job.
    unsafe { run(job, task, &weights) }
}

/// The panels of a job, as the kernels read them.
struct Weights {
    format: Format,
    steps: Steps,
    quants: Bf16Quants,
    /// What was subtracted from the quants of a format with offsets and belongs to its sums.
    lift: f32,
}

/// # Safety
/// As `run_product`, for all of the products.
unsafe fn run_scaled<const SUB_BLOCK: usize, const HAS_OFFSET: bool>(
    job: &Job<'_>,
    task: Task,
    weights: &Weights,
) {
    // SAFETY: the caller's contract.
    unsafe {
        match job.activations.profile() {
            ActivationProfile::A8 => {
                run_product::<SUB_BLOCK, HAS_OFFSET, Narrow>(job, task, weights);
            }
            ActivationProfile::A16 => {
                run_product::<SUB_BLOCK, HAS_OFFSET, Joined>(job, task, weights);
            }
        }
    }
}

/// # Safety
/// AMX tiles and the features named; this thread has no tiles; `weights` has sub-blocks of
/// `SUB_BLOCK`, with offsets if `HAS_OFFSET`, and lies in the job's panels.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn run_product<const SUB_BLOCK: usize, const HAS_OFFSET: bool, P: Product>(
    job: &Job<'_>,
    task: Task,
    weights: &Weights,
) {
    let activations = job.activations;
    let subs_per_row = job.num_blocks * (BLOCK / SUB_BLOCK);
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
    if HAS_OFFSET {
        assert!(job.corrections.len() >= task.tiles.end * subs_per_row * TILE_ROWS);
    }
    let mut scratch = MaybeUninit::<Scratch>::uninit();
    let scratch = scratch.as_mut_ptr();
    let num_steps = job.num_blocks.div_ceil(BLOCKS_PER_STEP);
    // SAFETY: the caller vouches for AMX.
    let _tiles = unsafe { Tiles::new(SUB_BLOCK) };
    for first_group in task.groups.clone().step_by(GROUPS) {
        let groups = first_group..(first_group + GROUPS).min(task.groups.end);
        for first_step in (0..num_steps).step_by(STEPS_PER_CHUNK) {
            let pass = Pass::<SUB_BLOCK, HAS_OFFSET> {
                job,
                weights,
                groups: groups.clone(),
                steps: first_step..(first_step + STEPS_PER_CHUNK).min(num_steps),
                scratch,
            };
            let single = task.tiles.len() % TOKEN_TILES;
            let pairs = task.tiles.start..task.tiles.end - single;
            // SAFETY: this function has the CPU features and configured the tiles; the pass lies
            // inside the job, whose arrays hold all of its tiles (asserted above).
            unsafe {
                pass.expand();
                pass.multiply::<P, TOKEN_TILES>(pairs.clone());
                pass.multiply::<P, 1>(pairs.end..task.tiles.end);
            }
        }
    }
}

/// One chunk of K of one or two row groups, for all tokens of a task.
struct Pass<'a, const SUB_BLOCK: usize, const HAS_OFFSET: bool> {
    job: &'a Job<'a>,
    weights: &'a Weights,
    groups: Range<usize>,
    steps: Range<usize>,
    scratch: *mut Scratch,
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

impl<const SUB_BLOCK: usize, const HAS_OFFSET: bool> Pass<'_, SUB_BLOCK, HAS_OFFSET> {
    const SUBS_PER_BLOCK: usize = BLOCK / SUB_BLOCK;

    /// Writes the groups' chunk as tiles and f32 scales.
    ///
    /// # Safety
    /// AVX-512 F, BW, DQ, VL; the pass lies inside the job, whose format `weights` describes.
    unsafe fn expand(&self) {
        let Weights {
            format,
            steps,
            quants,
            ..
        } = self.weights;
        for (index, group) in self.groups.clone().enumerate() {
            let panel = &self.job.panels[group * self.job.panel_bytes..][..self.job.panel_bytes];
            for (in_chunk, step_index) in self.steps.clone().enumerate() {
                let step = steps.step(step_index);
                let bytes = &panel[step.quants..][..step.num_blocks * steps.sub_block_bytes];
                // SAFETY: the caller vouches for the CPU and the format; a step has its section
                // before its sub-blocks, and blocks are below the chunk's.
                unsafe {
                    (format.scales)(
                        panel[step.section..step.quants].as_ptr(),
                        step.num_blocks * Self::SUBS_PER_BLOCK,
                        &raw mut (*self.scratch).scales[index][in_chunk],
                    );
                    (format.tiles)(
                        quants,
                        bytes.as_ptr(),
                        step.num_blocks,
                        &raw mut (*self.scratch).weights[index][in_chunk * BLOCKS_PER_STEP],
                    );
                }
            }
        }
    }

    /// Every output of `tiles`, `T` token tiles at a time, over the pass's chunk of K.
    ///
    /// # Safety
    /// The tiles are configured for `SUB_BLOCK`; the features of `run_product`; the weights are expanded;
    /// `tiles` lies inside the job and is whole `T`s; no other task writes these outputs.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn multiply<P: Product, const T: usize>(&self, tiles: Range<usize>) {
        for first_tile in tiles.step_by(T) {
            let words: [*const u8; T] = std::array::from_fn(|t| {
                let words = self.job.activations.tile_words(first_tile + t);
                words.as_ptr().cast()
            });
            for index in self.steps.clone() {
                let step = self.weights.steps.step(index);
                let step_subs = step.num_blocks * Self::SUBS_PER_BLOCK;
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
                            self.sum::<P, T>(words, phase, i);
                        }
                        for output in 0..GROUPS * T {
                            self.fold::<P>(phase, output);
                        }
                    }
                }
            }
        }
    }
}
