//! The chains of two row groups and the tokens of a tile, over all of K.

use super::super::GROUPS;
use super::super::format::{Format, StepScales, Steps};
use super::expand::Expand;
use super::products::{Factors, multiply_first, multiply_next, store_last};
use crate::matmul::job::Job;
use crate::matmul::panel::BLOCKS_PER_STEP;
use crate::matmul::quants::{BLOCK, QUAD, QUADS};
use crate::quantize::BYTE_TILE_TOKENS;
use std::arch::x86_64::*;

/// Tokens of a tile.
pub(super) const TOKENS: usize = BYTE_TILE_TOKENS;

/// How far ahead of its use a weight is asked for, within the panels of a pair of row groups.
pub(super) const PREFETCH_BYTES: usize = 2048;
/// Sub-blocks of a block at most.
const MAX_SUBS: usize = 2;
/// Bytes of a row of weights or sums.
pub(super) const ROW: usize = 64;
/// Bytes of a tile of sums.
pub(super) const SUMS_BYTES: usize = 1024;
/// Blocks between an expansion and the next one to the same place.
const EXPANDED: usize = 4;

/// A value per token, lanes are rows of a group.
pub(super) type Rows = [__m512; TOKENS];

/// What a task keeps near, of a few blocks in turn; everything is written before it is read.
#[repr(C, align(64))]
pub(super) struct Scratch {
    /// `[block][group]`, quad vectors.
    weights: [[[u8; ROW * QUADS]; GROUPS]; EXPANDED],
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
    /// The first group's panel, or its quads where they are ready.
    pub(super) panels: *const u8,
    /// Bytes from there to the second group's.
    pub(super) second: usize,
    /// `[group][step]` where they are ready.
    pub(super) ready_scales: *const StepScales,
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
    /// A block's sums are stored while the next one's are made, and folded after that. It is expanded one block
    /// before it is multiplied: a tile waits until what it loads has left the store buffer.
    ///
    /// # Safety
    /// The tiles are configured for the profile and `SUB_BLOCK`; AVX-512 F, BW, DQ, VL; every pointer has all
    /// blocks, as `E` wants them.
    #[inline(always)]
    pub(super) unsafe fn multiply<E: Expand>(&self) -> [Rows; GROUPS] {
        let num_blocks = self.job.num_blocks;
        let num_steps = num_blocks.div_ceil(BLOCKS_PER_STEP);
        // SAFETY: the caller's contract; blocks are below `num_blocks`, and each is expanded before
        // it is multiplied, multiplied before it is stored, and stored before it is folded.
        unsafe {
            let y = &raw mut (*self.scratch).y;
            y.write([[_mm512_setzero_ps(); TOKENS]; GROUPS]);
            let first = self.expand::<E>(0);
            let second = if num_blocks > 1 {
                self.expand::<E>(1)
            } else {
                first
            };
            let mut quads = [first, second];
            let factors = self.factors(0, 0, first);
            if E::IS_READY {
                multiply_first::<true>(factors);
            } else {
                multiply_first::<false>(factors);
            }
            self.advance::<E>(0, &mut quads);
            for index in 0..num_steps {
                let first = index * BLOCKS_PER_STEP;
                let end = num_blocks.min(first + BLOCKS_PER_STEP);
                let scales = self.step_scales::<E>(index);
                let mut acc = [[_mm512_setzero_ps(); TOKENS]; GROUPS];
                for block in first..end {
                    if block + 1 < num_blocks {
                        self.advance::<E>(block + 1, &mut quads);
                    }
                    self.fold::<E>(block, scales, &mut acc);
                }
                self.end_step(index, &acc, y);
            }
            y.read()
        }
    }

    /// Stores the sums of `block`, whose first sub-block's are in the tiles, and leaves those of the first sub-block
    /// after it there.
    ///
    /// # Safety
    /// As `multiply`; `quads` are the block's and the next one's, and become those of the block after it.
    #[inline(always)]
    unsafe fn advance<E: Expand>(&self, block: usize, quads: &mut [Quads; 2]) {
        let [this, next] = *quads;
        *quads = [next, next];
        if block + 2 < self.job.num_blocks {
            // SAFETY: the caller's contract.
            quads[1] = unsafe { self.expand::<E>(block + 2) };
        }
        for sub in 0..Self::SUBS_PER_BLOCK {
            let is_odd = (block * Self::SUBS_PER_BLOCK + sub) % 2 == 1;
            // SAFETY: the caller's contract.
            unsafe {
                let sums = (&raw mut (*self.scratch).sums[sub][block % 2]).cast();
                let factors = if sub + 1 < Self::SUBS_PER_BLOCK {
                    self.factors(block, sub + 1, this)
                } else if block + 1 < self.job.num_blocks {
                    self.factors(block + 1, 0, next)
                } else {
                    store_last(is_odd, sums);
                    return;
                };
                if E::IS_READY {
                    multiply_next::<true>(is_odd, factors, sums);
                } else {
                    multiply_next::<false>(is_odd, factors, sums);
                }
            }
        }
    }

    /// What the products of a sub-block multiply.
    ///
    /// # Safety
    /// As `multiply`; `quads` are the block's.
    #[inline(always)]
    unsafe fn factors(&self, block: usize, sub: usize, quads: Quads) -> Factors {
        let at = block * Self::PARTS * TOKENS * BLOCK + sub * SUB_BLOCK;
        Factors {
            // SAFETY: the caller's contract.
            words: unsafe { self.words.add(at) },
            weights: quads.map(|quads| quads.wrapping_add(sub * (SUB_BLOCK / QUAD) * ROW)),
        }
    }

    /// A block's quad vectors, written to its part of the scratch where they are not there.
    ///
    /// # Safety
    /// As `multiply`.
    #[inline(always)]
    unsafe fn expand<E: Expand>(&self, block: usize) -> Quads {
        let sub_block_bytes = E::sub_block_bytes(&self.format);
        if E::IS_READY {
            let first = self.panels.wrapping_add(block * sub_block_bytes);
            return [first, first.wrapping_add(self.second)];
        }
        let step = self.steps.step(block / BLOCKS_PER_STEP);
        let at = step.quants + block % BLOCKS_PER_STEP * sub_block_bytes;
        let ahead = self.ahead(at);
        let mut quads = [std::ptr::null(); GROUPS];
        for (group, quads) in quads.iter_mut().enumerate() {
            // SAFETY: the caller's contract.
            unsafe {
                let sub_block = self.panels.add(group * self.second + at);
                prefetch(sub_block, ahead, sub_block_bytes);
                let out = &raw mut (*self.scratch).weights[block % EXPANDED][group];
                *quads = E::expand(&self.format, sub_block, out.cast()).cast();
            }
        }
        quads
    }

    /// The scales of a step, of each group.
    ///
    /// # Safety
    /// As `multiply`.
    #[inline(always)]
    unsafe fn step_scales<E: Expand>(&self, index: usize) -> [*const StepScales; GROUPS] {
        let mut all = [std::ptr::null(); GROUPS];
        if E::IS_READY {
            let num_steps = self.job.num_blocks.div_ceil(BLOCKS_PER_STEP);
            for (group, scales) in all.iter_mut().enumerate() {
                *scales = self.ready_scales.wrapping_add(group * num_steps + index);
            }
            return all;
        }
        let step = self.steps.step(index);
        let num_subs = step.num_blocks * Self::SUBS_PER_BLOCK;
        for (group, scales) in all.iter_mut().enumerate() {
            // SAFETY: the caller's contract.
            unsafe {
                let section = self.panels.add(group * self.second + step.section);
                let bytes = step.quants - step.section;
                prefetch(section, self.ahead(step.section), bytes);
                let out = &raw mut (*self.scratch).scales[group];
                (self.format.scales)(section, num_subs, out);
                *scales = out;
            }
        }
        all
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
    /// As `multiply`; the block's sums are in the scratch, `scales` are those of its step.
    #[inline(always)]
    unsafe fn fold<E: Expand>(
        &self,
        block: usize,
        scales_of: [*const StepScales; GROUPS],
        acc: &mut [Rows; GROUPS],
    ) {
        let subs = Self::SUBS_PER_BLOCK;
        // SAFETY: the caller's contract.
        unsafe {
            for sub in 0..subs {
                let j = block % BLOCKS_PER_STEP * subs + sub;
                let corrections = self.corrections.wrapping_add((block * subs + sub) * TOKENS);
                let scales = self.scales.wrapping_add(block * TOKENS);
                for (group, acc) in acc.iter_mut().enumerate() {
                    let weights = &raw const (*scales_of[group])[j];
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
                        if !HAS_OFFSET && !E::IS_READY {
                            let correction = corrections.add(t).read();
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
                            let block_sum = f32::from_bits(corrections.add(t).read());
                            let block_sum = _mm512_set1_ps(block_sum);
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

/// Asks for `bytes` that lie `ahead` of `at`.
///
/// # Safety
/// SSE; prefetching never faults, so the address may lie outside the panels.
#[inline(always)]
pub(super) unsafe fn prefetch(at: *const u8, ahead: usize, bytes: usize) {
    for line in (0..bytes).step_by(64) {
        // SAFETY: a prefetch is a hint and does not access memory.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.wrapping_add(ahead + line).cast()) };
    }
}
