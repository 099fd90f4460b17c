//! A format as the tile kernels see it: where the parts of a panel lie, and functions that expand
//! them to quad vectors, BF16 tiles and f32 scales.
//!
//! The kernels are compiled once for each width of sub-blocks, with offsets and without, whatever the
//! number of formats; only these small functions are compiled for each.

use super::unpack::{Bf16Quants, BlockTile, unpack_tiles};
use crate::matmul::panel::{BLOCKS_PER_STEP, Step};
use crate::matmul::quants::{BLOCK, PANEL_ROWS, QUADS, QuantLayout};
use crate::matmul::scales::ScaleLayout;
use std::arch::x86_64::*;

/// Sub-blocks of a step at most.
pub(super) const MAX_SUBS: usize = 2 * BLOCKS_PER_STEP;

/// `w_j` and `n_j` of each sub-block of a step, 16 rows each; no `n_j` in formats without offsets.
pub(super) type StepScales = [[[f32; PANEL_ROWS]; 2]; MAX_SUBS];

/// See the module. Every function wants AVX-512 F, BW, DQ and VL.
#[derive(Clone, Copy)]
pub(super) struct Format {
    pub(super) sub_block_bytes: usize,
    section_bytes: fn(usize) -> usize,
    /// Expands a sub-block to its quad vectors.
    pub(super) quads: unsafe fn(*const u8, *mut __m512i),
    /// Expands so many sub-blocks to tiles of BF16.
    pub(super) tiles: unsafe fn(&Bf16Quants, *const u8, usize, *mut BlockTile),
    /// Expands so many sub-blocks' scales of a section.
    pub(super) scales: unsafe fn(*const u8, usize, *mut StepScales),
}

impl Format {
    pub(super) const fn of<Q: QuantLayout, S: ScaleLayout>() -> Self {
        Self {
            sub_block_bytes: Q::SUB_BLOCK_BYTES,
            section_bytes: S::section_bytes,
            quads: quads::<Q>,
            tiles: unpack_tiles::<Q>,
            scales: scales::<S>,
        }
    }

    /// Where the steps of a panel with `num_blocks` 32-blocks along K lie.
    pub(super) fn steps(&self, num_blocks: usize) -> Steps {
        let last = match num_blocks % BLOCKS_PER_STEP {
            0 => BLOCKS_PER_STEP,
            rest => rest,
        };
        let section_bytes = (self.section_bytes)(BLOCKS_PER_STEP);
        Steps {
            num_blocks,
            sub_block_bytes: self.sub_block_bytes,
            section_bytes,
            last_section_bytes: (self.section_bytes)(last),
            step_bytes: section_bytes + BLOCKS_PER_STEP * self.sub_block_bytes,
        }
    }
}

/// Places in a panel; what [`panel::step`](crate::matmul::panel::step) says, for a format known at run time.
#[derive(Clone, Copy)]
pub(super) struct Steps {
    num_blocks: usize,
    pub(super) sub_block_bytes: usize,
    section_bytes: usize,
    last_section_bytes: usize,
    step_bytes: usize,
}

impl Steps {
    #[inline(always)]
    pub(super) fn step(&self, index: usize) -> Step {
        let first_block = index * BLOCKS_PER_STEP;
        let section = index * self.step_bytes;
        let rest = self.num_blocks - first_block;
        let section_bytes = if rest > BLOCKS_PER_STEP {
            self.section_bytes
        } else {
            self.last_section_bytes
        };
        Step {
            section,
            quants: section + section_bytes,
            first_block,
            num_blocks: rest.min(BLOCKS_PER_STEP),
        }
    }
}

/// Writes a sub-block as its quad vectors.
///
/// # Safety
/// AVX-512 F, BW; `sub_block` is one, `out` can be written.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn quads<Q: QuantLayout>(sub_block: *const u8, out: *mut __m512i) {
    // SAFETY: the caller's contract.
    unsafe {
        store_quads::<Q>(sub_block, out);
    }
}

/// Writes a sub-block as its quad vectors.
///
/// # Safety
/// As `quads`.
#[inline(always)]
pub(super) unsafe fn store_quads<Q: QuantLayout>(sub_block: *const u8, out: *mut __m512i) {
    // No closures or iterators here: they would be compiled without the CPU features.
    // SAFETY: the caller's contract.
    unsafe {
        let quads = [
            Q::pair512::<0>(sub_block),
            Q::pair512::<1>(sub_block),
            Q::pair512::<2>(sub_block),
            Q::pair512::<3>(sub_block),
        ];
        for i in 0..QUADS {
            _mm512_store_si512(out.add(i), quads[i / 2][i % 2]);
        }
    }
}

/// Writes the scales of the first `num_subs` sub-blocks of a section.
///
/// # Safety
/// AVX-512 F, BW, DQ, VL; the section holds so many, `out` can be written.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn scales<S: ScaleLayout>(section: *const u8, num_subs: usize, out: *mut StepScales) {
    const { assert!(BLOCK / S::SUB_BLOCK <= 2) };
    for j in 0..num_subs {
        // SAFETY: the caller's contract.
        unsafe {
            let [weight, offset] = &mut (*out)[j];
            _mm512_storeu_ps(weight.as_mut_ptr(), S::weight512(section, j));
            if S::HAS_OFFSET {
                _mm512_storeu_ps(offset.as_mut_ptr(), S::offset512(section, j));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matmul::panel::{step, steps};
    use crate::matmul::quants::{U4, U8};
    use crate::matmul::scales::{HalfScale, SuperScaleOffset};

    /// The run-time places are the compile-time ones.
    fn check_steps<Q: QuantLayout, S: ScaleLayout>() {
        for num_blocks in [1, 7, 8, 9, 16, 18, 48] {
            let places = Format::of::<Q, S>().steps(num_blocks);
            for index in 0..steps::<Q, S>(num_blocks).count() {
                let (found, expected) = (places.step(index), step::<Q, S>(num_blocks, index));
                assert_eq!(
                    (
                        found.section,
                        found.quants,
                        found.first_block,
                        found.num_blocks
                    ),
                    (
                        expected.section,
                        expected.quants,
                        expected.first_block,
                        expected.num_blocks
                    )
                );
            }
        }
    }

    #[test]
    fn places_do_not_depend_on_when_the_format_is_known() {
        check_steps::<U8, HalfScale>();
        check_steps::<U4, HalfScale>();
        check_steps::<U4, SuperScaleOffset<32>>();
    }
}
