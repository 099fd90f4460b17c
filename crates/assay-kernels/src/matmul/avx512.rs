//! AVX-512 VNNI: lanes are rows, VPDPBUSD with the stored (unsigned) quants against broadcast quads
//! of activations; one or two row groups × up to four tokens share each load of weights.
//!
//! Level 1 and level 2 of the contract are the two `fmadd` chains below; nothing else rounds.

use super::job::{Job, Task};
use super::panel::{BLOCKS_PER_STEP, step};
use super::quants::{PANEL_ROWS, QUADS, QuantLayout};
use super::scales::ScaleLayout;
use crate::quantize::{ActivationProfile, TILE_TOKENS};
use std::arch::x86_64::*;

/// 256-blocks whose weights stay in the near caches while all tokens of a task pass over them.
const STEPS_PER_CHUNK: usize = 8;
/// How far ahead of its use a weight is asked for.
const PREFETCH_BYTES: usize = 8192;

/// How a profile's activations reach the dot product.
trait Activations {
    /// 32-bit words per quad and token.
    const WORDS: usize;
    /// 16-bit activations, scaled once per 256-block.
    const WIDE: bool;
}

/// 16-bit: `hi` and `lo` words, one scale per 256-block.
struct Wide;
/// 8-bit: one word, one scale per 32-block.
struct Narrow;

impl Activations for Wide {
    const WORDS: usize = 2;
    const WIDE: bool = true;
}

impl Activations for Narrow {
    const WORDS: usize = 1;
    const WIDE: bool = false;
}

/// Runs one task.
pub(super) fn run<Q: QuantLayout, S: ScaleLayout>(job: &Job<'_>, task: Task) {
    // SAFETY: kernels::run comes here only for an `Isa` of kind Avx512, which exists only on a CPU
    // with AVX-512 F, BW, DQ, VL, VBMI and VNNI.
    unsafe {
        match job.activations.profile() {
            ActivationProfile::A16 => run_profile::<Q, S, Wide>(job, task),
            ActivationProfile::A8 => run_profile::<Q, S, Narrow>(job, task),
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn run_profile<Q: QuantLayout, S: ScaleLayout, A: Activations>(job: &Job<'_>, task: Task) {
    let num_steps = job.num_blocks.div_ceil(BLOCKS_PER_STEP);
    // A single tile reads the weights once: keep that stream unbroken.
    let (chunk, groups_at_once) = if task.tiles.len() == 1 {
        (num_steps, 1)
    } else {
        (STEPS_PER_CHUNK, 2)
    };
    for group in task.groups.clone().step_by(groups_at_once) {
        let has_second = groups_at_once == 2 && group + 1 < task.groups.end;
        for first_step in (0..num_steps).step_by(chunk) {
            let steps = first_step..(first_step + chunk).min(num_steps);
            for tile in task.tiles.clone() {
                let at = |group| Place {
                    group,
                    tile,
                    first_step: steps.start,
                    end_step: steps.end,
                    prefetch: tile == task.tiles.start,
                };
                let width = job.activations.tile_width(tile);
                // SAFETY: this function has the CPU features; places lie inside the job.
                unsafe {
                    match (width, has_second) {
                        (TILE_TOKENS, true) => run_tile::<Q, S, A, 2, 4>(job, at(group)),
                        (TILE_TOKENS, false) => run_tile::<Q, S, A, 1, 4>(job, at(group)),
                        _ => {
                            for group in group..group + 1 + usize::from(has_second) {
                                match width {
                                    1 => run_tile::<Q, S, A, 1, 1>(job, at(group)),
                                    2 => run_tile::<Q, S, A, 1, 2>(job, at(group)),
                                    _ => run_tile::<Q, S, A, 1, 3>(job, at(group)),
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// One tile of work: `R` row groups from `group` on × the tokens of `tile` × a range of steps.
struct Place {
    group: usize,
    tile: usize,
    first_step: usize,
    end_step: usize,
    /// Ask for the weights behind these (the first tile of a task brings them in).
    prefetch: bool,
}

/// # Safety
/// Needs the features named; `place` lies inside the job, its tile is `T` tokens wide and `R` row
/// groups exist from its group on; no other task writes these outputs.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn run_tile<
    Q: QuantLayout,
    S: ScaleLayout,
    A: Activations,
    const R: usize,
    const T: usize,
>(
    job: &Job<'_>,
    place: Place,
) {
    const { assert!(T <= TILE_TOKENS) };
    let words = job.activations.tile_words(place.tile);
    let scales = job.activations.tile_scales(place.tile);
    let subs_per_block = 32 / S::SUB_BLOCK;
    let first_token = place.tile * TILE_TOKENS;
    let corrections_per_row = job.num_blocks * subs_per_block;
    let corrections = &job.corrections[first_token * corrections_per_row..];
    // The loops below index these three by quad, block and sub-block of the whole row.
    assert!(words.len() == job.num_blocks * QUADS * T * A::WORDS);
    assert!(corrections.len() >= T * corrections_per_row);
    assert!(
        scales.len()
            == T * if A::WIDE {
                job.num_blocks.div_ceil(8)
            } else {
                job.num_blocks
            }
    );
    let panels: [&[u8]; R] = std::array::from_fn(|r| {
        &job.panels[(place.group + r) * job.panel_bytes..][..job.panel_bytes]
    });
    let masks: [__mmask16; R] = std::array::from_fn(|r| {
        let rows = (job.n - (place.group + r) * PANEL_ROWS).min(PANEL_ROWS);
        ((1_u32 << rows) - 1) as __mmask16
    });
    let outputs: [[&mut [f32]; T]; R] = std::array::from_fn(|r| {
        let first = (place.group + r) * PANEL_ROWS;
        let rows = (job.n - first).min(PANEL_ROWS);
        std::array::from_fn(|t| {
            let start = (first_token + t) * job.n + first;
            // SAFETY: the caller vouches that no other task writes these outputs; (r, t) are
            // disjoint cells.
            unsafe { job.out.part(start, rows) }
        })
    });

    let mut y = [[_mm512_setzero_ps(); T]; R];
    if place.first_step > 0 {
        for r in 0..R {
            for t in 0..T {
                // SAFETY: the mask covers exactly the slice's elements.
                y[r][t] = unsafe { _mm512_maskz_loadu_ps(masks[r], outputs[r][t].as_ptr()) };
            }
        }
    }
    for index in place.first_step..place.end_step {
        let step = step::<Q, S>(job.num_blocks, index);
        // SAFETY: step `index` lies inside each panel (geometry of `panel`); words, scales and
        // corrections hold every block of the row (asserted above).
        let acc = unsafe {
            let sections: [*const u8; R] =
                std::array::from_fn(|r| panels[r].as_ptr().add(step.section));
            if place.prefetch {
                for section in sections {
                    prefetch(section, S::section_bytes(step.num_blocks));
                }
            }
            run_step::<Q, S, A, R, T>(
                &sections,
                step.quants - step.section,
                step.num_blocks,
                words
                    .as_ptr()
                    .add(step.first_block * QUADS * T * A::WORDS)
                    .cast(),
                scales
                    .as_ptr()
                    .add(if A::WIDE { 0 } else { step.first_block * T }),
                corrections
                    .as_ptr()
                    .add(step.first_block * subs_per_block * T),
                place.prefetch,
            )
        };
        for r in 0..R {
            for t in 0..T {
                y[r][t] = if A::WIDE {
                    _mm512_fmadd_ps(acc[r][t], _mm512_set1_ps(scales[index * T + t]), y[r][t])
                } else {
                    _mm512_add_ps(y[r][t], acc[r][t])
                };
            }
        }
    }
    let is_last = place.end_step * BLOCKS_PER_STEP >= job.num_blocks;
    for r in 0..R {
        let bias = match job.bias {
            Some(bias) if is_last => {
                let first = (place.group + r) * PANEL_ROWS;
                let bias = &bias[first..first + outputs[r][0].len()];
                // SAFETY: the mask covers exactly the slice's elements.
                Some(unsafe { _mm512_maskz_loadu_ps(masks[r], bias.as_ptr()) })
            }
            _ => None,
        };
        for t in 0..T {
            let y = bias.map_or(y[r][t], |bias| _mm512_add_ps(y[r][t], bias));
            // SAFETY: the mask covers exactly the slice's elements.
            unsafe { _mm512_mask_storeu_ps(outputs[r][t].as_mut_ptr(), masks[r], y) };
        }
    }
}

/// Level 1: one 256-block of `R` row groups × `T` tokens.
///
/// # Safety
/// AVX-512 F, BW, DQ, VL, VNNI; every section is followed, `quants` bytes on, by `num_blocks`
/// sub-blocks; the three arrays hold the blocks' words, scales (per 32-block when not wide) and
/// corrections for `T` tokens.
#[inline(always)]
unsafe fn run_step<
    Q: QuantLayout,
    S: ScaleLayout,
    A: Activations,
    const R: usize,
    const T: usize,
>(
    sections: &[*const u8; R],
    quants: usize,
    num_blocks: usize,
    words: *const i32,
    scales: *const f32,
    corrections: *const u32,
    ask_ahead: bool,
) -> [[__m512; T]; R] {
    // SAFETY: the caller vouches for the CPU and for `num_blocks` blocks behind every pointer.
    unsafe {
        let zero = _mm512_setzero_si512();
        let mut acc = [[_mm512_setzero_ps(); T]; R];
        for block in 0..num_blocks {
            let quants: [*const u8; R] =
                std::array::from_fn(|r| sections[r].add(quants + block * Q::SUB_BLOCK_BYTES));
            if ask_ahead {
                for quants in quants {
                    prefetch(quants, Q::SUB_BLOCK_BYTES);
                }
            }
            let words = words.add(block * QUADS * T * A::WORDS);
            let scales = scales.add(block * T);
            let subs = 32 / S::SUB_BLOCK;
            for sub in 0..subs {
                let j = block * subs + sub;
                let corrections = corrections.add(j * T);
                let mut hi = [[zero; T]; R];
                let mut lo = [[zero; T]; R];
                if !S::HAS_OFFSET {
                    for t in 0..T {
                        let start = _mm512_set1_epi32(corrections.add(t).read().cast_signed());
                        for lo in &mut lo {
                            lo[t] = start;
                        }
                    }
                }
                if subs == 1 || sub == 0 {
                    dot_pair::<Q, A, R, T, 0>(&quants, words, &mut hi, &mut lo);
                    dot_pair::<Q, A, R, T, 1>(&quants, words, &mut hi, &mut lo);
                }
                if subs == 1 || sub == 1 {
                    dot_pair::<Q, A, R, T, 2>(&quants, words, &mut hi, &mut lo);
                    dot_pair::<Q, A, R, T, 3>(&quants, words, &mut hi, &mut lo);
                }
                for r in 0..R {
                    let weight = S::weight512(sections[r], j);
                    let offset = S::offset512(sections[r], j);
                    for t in 0..T {
                        let s = if A::WIDE {
                            _mm512_add_epi32(_mm512_slli_epi32::<8>(hi[r][t]), lo[r][t])
                        } else {
                            lo[r][t]
                        };
                        let s = _mm512_cvtepi32_ps(s);
                        let scaled = |w| {
                            if A::WIDE {
                                return w;
                            }
                            _mm512_mul_ps(w, _mm512_set1_ps(scales.add(t).read()))
                        };
                        acc[r][t] = _mm512_fmadd_ps(s, scaled(weight), acc[r][t]);
                        if S::HAS_OFFSET {
                            let sum = _mm512_set1_ps(f32::from_bits(corrections.add(t).read()));
                            acc[r][t] = _mm512_fmadd_ps(sum, scaled(offset), acc[r][t]);
                        }
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
/// AVX-512 F, BW, VNNI; `quants` point to sub-blocks, `words` to the block's words of `T` tokens.
#[inline(always)]
unsafe fn dot_pair<
    Q: QuantLayout,
    A: Activations,
    const R: usize,
    const T: usize,
    const I: usize,
>(
    quants: &[*const u8; R],
    words: *const i32,
    hi: &mut [[__m512i; T]; R],
    lo: &mut [[__m512i; T]; R],
) {
    // SAFETY: the caller vouches for the CPU, the sub-blocks and the words; I < 4.
    unsafe {
        let pairs: [[__m512i; 2]; R] = std::array::from_fn(|r| Q::pair512::<I>(quants[r]));
        let words = words.add(2 * I * T * A::WORDS);
        dot_quad::<A, R, T>(pairs.map(|[even, _]| even), words, hi, lo);
        dot_quad::<A, R, T>(pairs.map(|[_, odd]| odd), words.add(T * A::WORDS), hi, lo);
    }
}

/// Adds one quad of every row and token to the exact integer sums.
///
/// # Safety
/// AVX-512 F, VNNI; `words` points to the quad's words of `T` tokens.
#[inline(always)]
unsafe fn dot_quad<A: Activations, const R: usize, const T: usize>(
    weights: [__m512i; R],
    words: *const i32,
    hi: &mut [[__m512i; T]; R],
    lo: &mut [[__m512i; T]; R],
) {
    // SAFETY: the caller vouches for the CPU and the words.
    unsafe {
        for t in 0..T {
            let word = words.add(t * A::WORDS);
            if A::WIDE {
                let a = _mm512_set1_epi32(word.read());
                for r in 0..R {
                    hi[r][t] = _mm512_dpbusd_epi32(hi[r][t], weights[r], a);
                }
            }
            let a = _mm512_set1_epi32(word.add(A::WORDS - 1).read());
            for r in 0..R {
                lo[r][t] = _mm512_dpbusd_epi32(lo[r][t], weights[r], a);
            }
        }
    }
}

/// Asks for the lines `PREFETCH_BYTES` behind `at`.
///
/// # Safety
/// SSE; prefetching never faults, so the address may lie outside the panels.
#[inline(always)]
unsafe fn prefetch(at: *const u8, bytes: usize) {
    for line in (0..bytes).step_by(64) {
        let ahead = at.wrapping_add(PREFETCH_BYTES + line);
        // SAFETY: a prefetch is a hint and does not access memory.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(ahead.cast()) };
    }
}
