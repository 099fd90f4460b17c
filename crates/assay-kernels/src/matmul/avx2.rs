//! AVX2: lanes are rows, eight at a time. Stored quants are widened to 16 bits (even and odd bytes)
//! and multiplied with VPMADDWD against 16-bit pairs of activations of either profile; nothing
//! saturates: a pair sum is at most 2·255·32,512.
//!
//! Level 1 and level 2 of the contract are the two `fmadd` chains below; nothing else rounds.

use super::job::{Job, Task};
use super::panel::{BLOCKS_PER_STEP, Step, step};
use super::quants::{BLOCK, PANEL_ROWS, QUADS, QuantLayout};
use super::scales::ScaleLayout;
use crate::quantize::{ActivationProfile, TILE_TOKENS};
use std::arch::x86_64::*;

/// Vectors of eight rows in a panel.
const HALVES: usize = PANEL_ROWS / 8;
/// 32-bit words per quad and token: elements (0, 2) and (1, 3).
const WORDS: usize = 2;
/// How far ahead of its use a weight is asked for.
const PREFETCH_BYTES: usize = 8192;

/// Runs one task.
pub(super) fn run<Q: QuantLayout, S: ScaleLayout>(job: &Job<'_>, task: Task) {
    for group in task.groups {
        for tile in task.tiles.clone() {
            // The first tile brings the weights in; the others find them near.
            let prefetch = tile == task.tiles.start;
            // SAFETY: kernels::run comes here only for an `Isa` of kind Avx2, which exists only on a
            // CPU with AVX2, FMA and F16C; group and tile lie inside the job and tasks are disjoint.
            unsafe {
                match job.activations.tile_width(tile) {
                    1 => run_tile::<Q, S, 1>(job, group, tile, prefetch),
                    2 => run_tile::<Q, S, 2>(job, group, tile, prefetch),
                    3 => run_tile::<Q, S, 3>(job, group, tile, prefetch),
                    _ => run_tile::<Q, S, 4>(job, group, tile, prefetch),
                }
            }
        }
    }
}

/// One row group × the tokens of one tile.
///
/// # Safety
/// Needs the features named; `group` and `tile` lie inside the job and the tile is `T` tokens wide;
/// no other task writes these outputs.
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn run_tile<Q: QuantLayout, S: ScaleLayout, const T: usize>(
    job: &Job<'_>,
    group: usize,
    tile: usize,
    prefetch: bool,
) {
    const { assert!(T <= TILE_TOKENS) };
    let wide = job.activations.profile() == ActivationProfile::A16;
    let words = job.activations.tile_words(tile);
    let scales = job.activations.tile_scales(tile);
    let first_token = tile * TILE_TOKENS;
    let corrections_per_row = job.num_blocks * (BLOCK / S::SUB_BLOCK);
    let corrections = &job.corrections[first_token * corrections_per_row..];
    // The loops below index these by quad and sub-block of the whole row.
    assert!(words.len() == job.num_blocks * QUADS * T * WORDS);
    assert!(corrections.len() >= T * corrections_per_row);
    let panel = &job.panels[group * job.panel_bytes..][..job.panel_bytes];

    let mut y = [[_mm256_setzero_ps(); T]; HALVES];
    for index in 0..job.num_blocks.div_ceil(BLOCKS_PER_STEP) {
        let step = step::<Q, S>(job.num_blocks, index);
        let block_scales = if wide {
            None
        } else {
            Some(&scales[step.first_block * T..])
        };
        if prefetch {
            let end = step.quants + step.num_blocks * Q::SUB_BLOCK_BYTES;
            for line in (step.section..end).step_by(64) {
                let ahead = panel.as_ptr().wrapping_add(PREFETCH_BYTES + line);
                _mm_prefetch::<_MM_HINT_T0>(ahead.cast());
            }
        }
        for (half, y) in y.iter_mut().enumerate() {
            // SAFETY: the step lies inside the panel (geometry of `panel`); words and corrections
            // hold every block of the row (asserted above).
            let acc = unsafe {
                run_step::<Q, S, T>(panel, &step, half, words, block_scales, corrections)
            };
            for t in 0..T {
                y[t] = if wide {
                    _mm256_fmadd_ps(acc[t], _mm256_set1_ps(scales[index * T + t]), y[t])
                } else {
                    _mm256_add_ps(y[t], acc[t])
                };
            }
        }
    }
    let first = group * PANEL_ROWS;
    let rows = PANEL_ROWS.min(job.n - first);
    let [low, high] = y;
    for (t, (low, high)) in low.into_iter().zip(high).enumerate() {
        let mut lanes = [0.0_f32; PANEL_ROWS];
        // SAFETY: `lanes` is 64 bytes.
        unsafe {
            _mm256_storeu_ps(lanes.as_mut_ptr(), low);
            _mm256_storeu_ps(lanes.as_mut_ptr().add(8), high);
        }
        let start = (first_token + t) * job.n + first;
        // SAFETY: the caller vouches that no other task writes these outputs.
        let out = unsafe { job.out.part(start, rows) };
        match job.bias {
            Some(bias) => {
                for ((out, lane), bias) in out.iter_mut().zip(lanes).zip(&bias[first..]) {
                    *out = lane + bias;
                }
            }
            None => out.copy_from_slice(&lanes[..rows]),
        }
    }
}

/// Level 1: one 256-block of eight rows × `T` tokens; `block_scales` are those of 8-bit activations,
/// `[32-block][token]` from the step's first block on.
///
/// # Safety
/// AVX2, FMA, F16C; the step lies inside `panel`; `words` and `corrections` hold all its blocks.
#[inline(always)]
unsafe fn run_step<Q: QuantLayout, S: ScaleLayout, const T: usize>(
    panel: &[u8],
    step: &Step,
    half: usize,
    words: &[u32],
    block_scales: Option<&[f32]>,
    corrections: &[u32],
) -> [__m256; T] {
    let subs = BLOCK / S::SUB_BLOCK;
    // SAFETY: the caller vouches for the CPU and for the step's blocks behind every pointer.
    unsafe {
        let section = panel.as_ptr().add(step.section);
        let mut acc = [_mm256_setzero_ps(); T];
        for block in 0..step.num_blocks {
            let quants = panel.as_ptr().add(step.quants + block * Q::SUB_BLOCK_BYTES);
            let words = words
                .as_ptr()
                .add((step.first_block + block) * QUADS * T * WORDS);
            for sub in 0..subs {
                let j = block * subs + sub;
                let corrections = corrections.as_ptr().add((step.first_block * subs + j) * T);
                let mut s = [_mm256_setzero_si256(); T];
                if !S::HAS_OFFSET {
                    for (t, s) in s.iter_mut().enumerate() {
                        *s = _mm256_set1_epi32(corrections.add(t).read().cast_signed());
                    }
                }
                if subs == 1 || sub == 0 {
                    dot_pair::<Q, T, 0>(quants, half, words.cast(), &mut s);
                    dot_pair::<Q, T, 1>(quants, half, words.cast(), &mut s);
                }
                if subs == 1 || sub == 1 {
                    dot_pair::<Q, T, 2>(quants, half, words.cast(), &mut s);
                    dot_pair::<Q, T, 3>(quants, half, words.cast(), &mut s);
                }
                let weight = S::weight256(section, j, half);
                let offset = S::offset256(section, j, half);
                for t in 0..T {
                    let scaled = |w| match block_scales {
                        Some(scales) => _mm256_mul_ps(w, _mm256_set1_ps(scales[block * T + t])),
                        None => w,
                    };
                    acc[t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(s[t]), scaled(weight), acc[t]);
                    if S::HAS_OFFSET {
                        let sum = _mm256_set1_ps(f32::from_bits(corrections.add(t).read()));
                        acc[t] = _mm256_fmadd_ps(sum, scaled(offset), acc[t]);
                    }
                }
            }
        }
        acc
    }
}

/// Adds quads `2·I` and `2·I + 1` of one block to the exact integer sums.
///
/// # Safety
/// AVX2; `quants` points to a sub-block, `words` to the block's words of `T` tokens.
#[inline(always)]
unsafe fn dot_pair<Q: QuantLayout, const T: usize, const I: usize>(
    quants: *const u8,
    half: usize,
    words: *const i32,
    s: &mut [__m256i; T],
) {
    // SAFETY: the caller vouches for the CPU, the sub-block and the words; I < 4.
    unsafe {
        let low_bytes = _mm256_set1_epi16(0x00FF);
        let weights = Q::pair256::<I>(quants, half);
        for (c, weights) in weights.into_iter().enumerate() {
            let even = _mm256_and_si256(weights, low_bytes);
            let odd = _mm256_srli_epi16::<8>(weights);
            for (t, s) in s.iter_mut().enumerate() {
                let word = words.add(((2 * I + c) * T + t) * WORDS);
                let a_even = _mm256_set1_epi32(word.read());
                let a_odd = _mm256_set1_epi32(word.add(1).read());
                *s = _mm256_add_epi32(*s, _mm256_madd_epi16(even, a_even));
                *s = _mm256_add_epi32(*s, _mm256_madd_epi16(odd, a_odd));
            }
        }
    }
}
