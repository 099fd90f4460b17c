//! AVX-512 VNNI: lanes are rows, VPDPBUSD with the stored (unsigned) quants against broadcast quads
//! of activations; up to four tokens share each load of weights (two row groups at once gained nothing).
//!
//! Level 1 and level 2 of the contract are the two `fmadd` chains below; nothing else rounds.

use super::job::{Job, Task};
use super::panel::{BLOCKS_PER_STEP, step};
use super::quants::{BLOCK, PANEL_ROWS, QUADS, QuantLayout};
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
    for group in task.groups {
        for first_step in (0..num_steps).step_by(STEPS_PER_CHUNK) {
            for tile in task.tiles.clone() {
                let place = Place {
                    group,
                    tile,
                    first_step,
                    end_step: (first_step + STEPS_PER_CHUNK).min(num_steps),
                    prefetch: tile == task.tiles.start,
                };
                // SAFETY: this function has the CPU features; places lie inside the job and tasks
                // are disjoint.
                unsafe {
                    match job.activations.tile_width(tile) {
                        1 => run_tile::<Q, S, A, 1>(job, place),
                        2 => run_tile::<Q, S, A, 2>(job, place),
                        3 => run_tile::<Q, S, A, 3>(job, place),
                        _ => run_tile::<Q, S, A, TILE_TOKENS>(job, place),
                    }
                }
            }
        }
    }
}

/// One tile of work: a row group × the tokens of a tile × a range of steps.
struct Place {
    group: usize,
    tile: usize,
    first_step: usize,
    end_step: usize,
    /// Ask for the weights behind these (the first tile of a task brings them in).
    prefetch: bool,
}

/// # Safety
/// Needs the features named; `place` lies inside the job and its tile is `T` tokens wide; no other
/// task writes these outputs.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn run_tile<Q: QuantLayout, S: ScaleLayout, A: Activations, const T: usize>(
    job: &Job<'_>,
    place: Place,
) {
    const { assert!(T <= TILE_TOKENS) };
    let words = job.activations.tile_words(place.tile);
    let scales = job.activations.tile_scales(place.tile);
    let subs_per_block = BLOCK / S::SUB_BLOCK;
    let first_token = place.tile * TILE_TOKENS;
    let corrections_per_row = job.num_blocks * subs_per_block;
    let corrections = &job.corrections[first_token * corrections_per_row..];
    // The loops below index these three by quad, block and sub-block of the whole row.
    let scales_per_row = if A::WIDE {
        job.num_blocks.div_ceil(BLOCKS_PER_STEP)
    } else {
        job.num_blocks
    };
    assert!(words.len() == job.num_blocks * QUADS * T * A::WORDS);
    assert!(corrections.len() >= T * corrections_per_row);
    assert!(scales.len() == T * scales_per_row);
    let panel = &job.panels[place.group * job.panel_bytes..][..job.panel_bytes];
    let first = place.group * PANEL_ROWS;
    let rows = (job.n - first).min(PANEL_ROWS);
    let mask = ((1_u32 << rows) - 1) as __mmask16;
    let outputs: [&mut [f32]; T] = std::array::from_fn(|t| {
        // SAFETY: the caller vouches that no other task writes these outputs; tokens are apart.
        unsafe { job.out.part((first_token + t) * job.n + first, rows) }
    });

    let mut y = [_mm512_setzero_ps(); T];
    if place.first_step > 0 {
        for (y, output) in y.iter_mut().zip(&outputs) {
            // SAFETY: the mask covers exactly the slice's elements.
            *y = unsafe { _mm512_maskz_loadu_ps(mask, output.as_ptr()) };
        }
    }
    for index in place.first_step..place.end_step {
        let step = step::<Q, S>(job.num_blocks, index);
        // SAFETY: step `index` lies inside the panel (geometry of `panel`); words, scales and
        // corrections hold every block of the row (asserted above).
        let acc = unsafe {
            let section = panel.as_ptr().add(step.section);
            if place.prefetch {
                prefetch(section, step.quants - step.section);
            }
            run_step::<Q, S, A, T>(
                section,
                panel.as_ptr().add(step.quants),
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
        for t in 0..T {
            y[t] = if A::WIDE {
                _mm512_fmadd_ps(acc[t], _mm512_set1_ps(scales[index * T + t]), y[t])
            } else {
                _mm512_add_ps(y[t], acc[t])
            };
        }
    }
    let bias = match job.bias {
        Some(bias) if place.end_step * BLOCKS_PER_STEP >= job.num_blocks => {
            let bias = &bias[first..first + rows];
            // SAFETY: the mask covers exactly the slice's elements.
            Some(unsafe { _mm512_maskz_loadu_ps(mask, bias.as_ptr()) })
        }
        _ => None,
    };
    for (y, output) in y.into_iter().zip(outputs) {
        let y = bias.map_or(y, |bias| _mm512_add_ps(y, bias));
        // SAFETY: the mask covers exactly the slice's elements.
        unsafe { _mm512_mask_storeu_ps(output.as_mut_ptr(), mask, y) };
    }
}

/// Level 1: one 256-block of a row group × `T` tokens.
///
/// # Safety
/// AVX-512 F, BW, DQ, VL, VNNI; `section` and `quants` hold `num_blocks` blocks; the three arrays
/// hold the blocks' words, scales (per 32-block when not wide) and corrections for `T` tokens.
#[inline(always)]
unsafe fn run_step<Q: QuantLayout, S: ScaleLayout, A: Activations, const T: usize>(
    section: *const u8,
    quants: *const u8,
    num_blocks: usize,
    words: *const i32,
    scales: *const f32,
    corrections: *const u32,
    ask_ahead: bool,
) -> [__m512; T] {
    // SAFETY: the caller vouches for the CPU and for `num_blocks` blocks behind every pointer.
    unsafe {
        let zero = _mm512_setzero_si512();
        let mut acc = [_mm512_setzero_ps(); T];
        for block in 0..num_blocks {
            let quants = quants.add(block * Q::SUB_BLOCK_BYTES);
            if ask_ahead {
                prefetch(quants, Q::SUB_BLOCK_BYTES);
            }
            let words = words.add(block * QUADS * T * A::WORDS);
            let scales = scales.add(block * T);
            let subs = BLOCK / S::SUB_BLOCK;
            for sub in 0..subs {
                let j = block * subs + sub;
                let corrections = corrections.add(j * T);
                let mut hi = [zero; T];
                let mut lo = [zero; T];
                if !S::HAS_OFFSET {
                    for (t, lo) in lo.iter_mut().enumerate() {
                        *lo = _mm512_set1_epi32(corrections.add(t).read().cast_signed());
                    }
                }
                if subs == 1 || sub == 0 {
                    dot_pair::<Q, A, T, 0>(quants, words, &mut hi, &mut lo);
                    dot_pair::<Q, A, T, 1>(quants, words, &mut hi, &mut lo);
                }
                if subs == 1 || sub == 1 {
                    dot_pair::<Q, A, T, 2>(quants, words, &mut hi, &mut lo);
                    dot_pair::<Q, A, T, 3>(quants, words, &mut hi, &mut lo);
                }
                let weight = S::weight512(section, j);
                let offset = S::offset512(section, j);
                for t in 0..T {
                    let s = if A::WIDE {
                        _mm512_add_epi32(_mm512_slli_epi32::<8>(hi[t]), lo[t])
                    } else {
                        lo[t]
                    };
                    let scaled = |w| {
                        if A::WIDE {
                            return w;
                        }
                        _mm512_mul_ps(w, _mm512_set1_ps(scales.add(t).read()))
                    };
                    acc[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(s), scaled(weight), acc[t]);
                    if S::HAS_OFFSET {
                        let sum = _mm512_set1_ps(f32::from_bits(corrections.add(t).read()));
                        acc[t] = _mm512_fmadd_ps(sum, scaled(offset), acc[t]);
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
/// AVX-512 F, BW, VNNI; `quants` points to a sub-block, `words` to the block's words of `T` tokens.
#[inline(always)]
unsafe fn dot_pair<Q: QuantLayout, A: Activations, const T: usize, const I: usize>(
    quants: *const u8,
    words: *const i32,
    hi: &mut [__m512i; T],
    lo: &mut [__m512i; T],
) {
    // SAFETY: the caller vouches for the CPU, the sub-block and the words; I < 4.
    unsafe {
        let [even, odd] = Q::pair512::<I>(quants);
        let words = words.add(2 * I * T * A::WORDS);
        dot_quad::<A, T>(even, words, hi, lo);
        dot_quad::<A, T>(odd, words.add(T * A::WORDS), hi, lo);
    }
}

/// Adds one quad of every row and token to the exact integer sums.
///
/// # Safety
/// AVX-512 F, VNNI; `words` points to the quad's words of `T` tokens.
#[inline(always)]
unsafe fn dot_quad<A: Activations, const T: usize>(
    weights: __m512i,
    words: *const i32,
    hi: &mut [__m512i; T],
    lo: &mut [__m512i; T],
) {
    // SAFETY: the caller vouches for the CPU and the words.
    unsafe {
        for t in 0..T {
            let word = words.add(t * A::WORDS);
            if A::WIDE {
                hi[t] = _mm512_dpbusd_epi32(hi[t], weights, _mm512_set1_epi32(word.read()));
            }
            let low = _mm512_set1_epi32(word.add(A::WORDS - 1).read());
            lo[t] = _mm512_dpbusd_epi32(lo[t], weights, low);
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
