//! The chains of two row groups and the tokens of a tile, over all of K.

use super::super::GROUPS;
use super::super::format::{Format, StepScales, Steps};
use super::TOKENS;
use super::expand::Expand;
use crate::matmul::job::Job;
use crate::matmul::panel::BLOCKS_PER_STEP;
use crate::matmul::quants::{BLOCK, QUAD, QUADS};
use std::arch::asm;
use std::arch::x86_64::*;

/// How far ahead of its use a weight is asked for, within the panels of a pair of row groups.
const PREFETCH_BYTES: usize = 2048;
/// Sub-blocks of a block at most.
const MAX_SUBS: usize = 2;
/// Bytes of a row of weights or sums.
const ROW: usize = 64;
/// Bytes of a tile of sums.
const SUMS_BYTES: usize = 1024;

/// A value per token, lanes are rows of a group.
pub(super) type Rows = [__m512; TOKENS];

/// What a task keeps near, of two blocks in turn; everything is written before it is read.
#[repr(C, align(64))]
pub(super) struct Scratch {
    /// `[block][group]`, quad vectors.
    weights: [[[u8; ROW * QUADS]; GROUPS]; 2],
    /// `[group]`, of the step that is folded.
    scales: [StepScales; GROUPS],
    /// `[sub-block][block][group]`, `[part][token][row]`: the two blocks lie half a page apart, so that loads of the
    /// one's sums are not taken for the other's stores.
    sums: [[[[u8; SUMS_BYTES]; GROUPS]; 2]; MAX_SUBS],
    /// Level 2.
    y: [Rows; GROUPS],
}

/// Where a block's quad vectors are, of each group.
type Quads = [*const u8; GROUPS];

/// Two row groups × the tokens of a tile × all of K.
pub(super) struct Pass<'a, const SUB_BLOCK: usize, const HAS_OFFSET: bool, const WIDE: bool> {
    pub(super) job: &'a Job<'a>,
    pub(super) format: Format,
    pub(super) steps: Steps,
    /// The first group's panel.
    pub(super) panels: *const u8,
    /// Bytes from there to the second group's.
    pub(super) second: usize,
    pub(super) words: *const u8,
    pub(super) scales: *const f32,
    pub(super) corrections: *const u32,
    pub(super) scratch: *mut Scratch,
}

impl<const SUB_BLOCK: usize, const HAS_OFFSET: bool, const WIDE: bool>
    Pass<'_, SUB_BLOCK, HAS_OFFSET, WIDE>
{
    const PARTS: usize = if WIDE { 2 } else { 1 };
    const SUBS_PER_BLOCK: usize = BLOCK / SUB_BLOCK;

    /// The outputs before the bias.
    ///
    /// A block is expanded two blocks and multiplied one block before it is folded: a tile waits until
    /// what it loads has left the store buffer, and a fold for the latency of the tiles.
    ///
    /// # Safety
    /// The tiles are configured for the profile and `SUB_BLOCK`; AVX-512 F, BW, DQ, VL; every pointer has all
    /// blocks.
    #[inline(always)]
    pub(super) unsafe fn multiply<E: Expand>(&self) -> [Rows; GROUPS] {
        let num_blocks = self.job.num_blocks;
        let num_steps = num_blocks.div_ceil(BLOCKS_PER_STEP);
        // SAFETY: the caller's contract; blocks are below `num_blocks`, and each is expanded before
        // it is multiplied, and multiplied before it is folded.
        unsafe {
            let y = &raw mut (*self.scratch).y;
            y.write([[_mm512_setzero_ps(); TOKENS]; GROUPS]);
            let mut next = self.expand::<E>(0);
            self.multiply_block(0, next);
            if num_blocks > 1 {
                next = self.expand::<E>(1);
            }
            for index in 0..num_steps {
                let first = index * BLOCKS_PER_STEP;
                let end = num_blocks.min(first + BLOCKS_PER_STEP);
                self.expand_scales(index);
                let mut acc = [[_mm512_setzero_ps(); TOKENS]; GROUPS];
                for block in first..end {
                    if block + 1 < num_blocks {
                        let quads = next;
                        if block + 2 < num_blocks {
                            next = self.expand::<E>(block + 2);
                        }
                        self.multiply_block(block + 1, quads);
                    }
                    self.fold(block, &mut acc);
                }
                self.end_step(index, &acc, y);
            }
            y.read()
        }
    }

    /// A block's quad vectors, to its half of the scratch where they are not stored so.
    ///
    /// # Safety
    /// As `multiply`.
    #[inline(always)]
    unsafe fn expand<E: Expand>(&self, block: usize) -> Quads {
        let step = self.steps.step(block / BLOCKS_PER_STEP);
        let sub_block_bytes = E::sub_block_bytes(&self.format);
        let at = step.quants + block % BLOCKS_PER_STEP * sub_block_bytes;
        let ahead = self.ahead(at);
        let mut quads = [std::ptr::null(); GROUPS];
        for (group, quads) in quads.iter_mut().enumerate() {
            // SAFETY: the caller's contract.
            unsafe {
                let sub_block = self.panels.add(group * self.second + at);
                prefetch(sub_block, ahead, sub_block_bytes);
                let out = &raw mut (*self.scratch).weights[block % 2][group];
                *quads = E::expand(&self.format, sub_block, out.cast()).cast();
            }
        }
        quads
    }

    /// The scales of a step, for its folds.
    ///
    /// # Safety
    /// As `multiply`.
    #[inline(always)]
    unsafe fn expand_scales(&self, index: usize) {
        let step = self.steps.step(index);
        let num_subs = step.num_blocks * Self::SUBS_PER_BLOCK;
        for group in 0..GROUPS {
            // SAFETY: the caller's contract.
            unsafe {
                let section = self.panels.add(group * self.second + step.section);
                let bytes = step.quants - step.section;
                prefetch(section, self.ahead(step.section), bytes);
                let scales = &raw mut (*self.scratch).scales[group];
                (self.format.scales)(section, num_subs, scales);
            }
        }
    }

    /// The integer sums of a block, to its half of the scratch.
    ///
    /// # Safety
    /// As `multiply`; `quads` are the block's.
    #[inline(always)]
    unsafe fn multiply_block(&self, block: usize, quads: Quads) {
        // SAFETY: the caller's contract.
        unsafe {
            let words = self.words.add(block * Self::PARTS * TOKENS * BLOCK);
            for sub in 0..Self::SUBS_PER_BLOCK {
                let sums = &raw mut (*self.scratch).sums[sub][block % 2];
                multiply_tiles(
                    words.add(sub * SUB_BLOCK),
                    quads.map(|quads| quads.wrapping_add(sub * (SUB_BLOCK / QUAD) * ROW)),
                    sums.cast(),
                );
            }
        }
    }

    /// How far behind a byte of a panel lies what is wanted soon: in the same panel, or in the one of the
    /// next pair of row groups.
    #[inline(always)]
    fn ahead(&self, at: usize) -> usize {
        if at + PREFETCH_BYTES < self.job.panel_bytes {
            PREFETCH_BYTES
        } else {
            PREFETCH_BYTES + self.second
        }
    }

    /// Level 1 over the sub-blocks of a block.
    ///
    /// # Safety
    /// As `multiply`; the block's sums and scales are in the scratch.
    #[inline(always)]
    unsafe fn fold(&self, block: usize, acc: &mut [Rows; GROUPS]) {
        let subs = Self::SUBS_PER_BLOCK;
        // SAFETY: the caller's contract.
        unsafe {
            for sub in 0..subs {
                let j = block % BLOCKS_PER_STEP * subs + sub;
                let corrections = self.corrections.add((block * subs + sub) * TOKENS);
                let scales = self.scales.wrapping_add(block * TOKENS);
                for (group, acc) in acc.iter_mut().enumerate() {
                    let weights = &raw const (*self.scratch).scales[group][j];
                    let weight = _mm512_load_ps((*weights)[0].as_ptr());
                    let offset = if HAS_OFFSET {
                        _mm512_load_ps((*weights)[1].as_ptr())
                    } else {
                        _mm512_setzero_ps()
                    };
                    let sums = &raw const (*self.scratch).sums[sub][block % 2][group];
                    let sums = sums.cast::<__m512i>();
                    for (t, acc) in acc.iter_mut().enumerate() {
                        let mut s = _mm512_load_si512(sums.add(t));
                        if WIDE {
                            let lo = _mm512_load_si512(sums.add(TOKENS + t));
                            s = _mm512_add_epi32(_mm512_slli_epi32::<8>(s), lo);
                        }
                        let correction = corrections.add(t).read();
                        if !HAS_OFFSET {
                            s = _mm512_add_epi32(s, _mm512_set1_epi32(correction.cast_signed()));
                        }
                        let scaled = |w| {
                            if WIDE {
                                return w;
                            }
                            // Only 8-bit activations have a scale per block.
                            _mm512_mul_ps(w, _mm512_set1_ps(scales.add(t).read()))
                        };
                        *acc = _mm512_fmadd_ps(_mm512_cvtepi32_ps(s), scaled(weight), *acc);
                        if HAS_OFFSET {
                            let block_sum = _mm512_set1_ps(f32::from_bits(correction));
                            *acc = _mm512_fmadd_ps(block_sum, scaled(offset), *acc);
                        }
                    }
                }
            }
        }
    }

    /// Level 2: ends a 256-block.
    ///
    /// # Safety
    /// As `multiply`; `index` is a step, `y` those of the scratch.
    #[inline(always)]
    unsafe fn end_step(&self, index: usize, acc: &[Rows; GROUPS], y: *mut [Rows; GROUPS]) {
        // SAFETY: the caller's contract.
        unsafe {
            for (group, acc) in acc.iter().enumerate() {
                for (t, acc) in acc.iter().enumerate() {
                    let y = &raw mut (*y)[group][t];
                    *y = if WIDE {
                        let scale = _mm512_set1_ps(self.scales.add(index * TOKENS + t).read());
                        _mm512_fmadd_ps(*acc, scale, *y)
                    } else {
                        _mm512_add_ps(*y, *acc)
                    };
                }
            }
        }
    }
}

/// Two tiles of sums from one of activations, whose rows lie a block apart, and two of weights.
///
/// # Safety
/// The tiles are configured; every pointer has its tiles, `sums` may be written.
#[inline(always)]
unsafe fn multiply_tiles(words: *const u8, weights: [*const u8; GROUPS], sums: *mut u8) {
    // SAFETY: the caller's contract; nothing but tiles and `sums` is written.
    unsafe {
        asm!(
            "tileloadd tmm4, [{words} + {word_row}]",
            "tileloadd tmm6, [{first} + {row}]",
            "tileloadd tmm7, [{second} + {row}]",
            "tilezero tmm0",
            "tilezero tmm1",
            "tdpbsud tmm0, tmm4, tmm6",
            "tdpbsud tmm1, tmm4, tmm7",
            "tilestored [{sums} + {row}], tmm0",
            "tilestored [{sums} + {row} + 1024], tmm1",
            words = in(reg) words,
            word_row = in(reg) BLOCK,
            first = in(reg) weights[0],
            second = in(reg) weights[1],
            row = in(reg) ROW,
            sums = in(reg) sums,
            out("tmm0") _, out("tmm1") _, out("tmm4") _, out("tmm6") _, out("tmm7") _,
            options(nostack, preserves_flags),
        );
    }
}

/// Asks for `bytes` that lie `ahead` of `at`.
///
/// # Safety
/// SSE; prefetching never faults, so the address may lie outside the panels.
#[inline(always)]
unsafe fn prefetch(at: *const u8, ahead: usize, bytes: usize) {
    for line in (0..bytes).step_by(64) {
        // SAFETY: a prefetch is a hint and does not access memory.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.wrapping_add(ahead + line).cast()) };
    }
}

// The displacement above is a tile of sums, and a half of the scratch's sums is two of them.
const _: () = assert!(SUMS_BYTES == 1024 && GROUPS == 2 && 2 * TOKENS * ROW == SUMS_BYTES);
