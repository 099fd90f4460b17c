//! The geometry of a packed panel: 16 rows of a matrix, 256 elements of K at a time, each step a
//! section of scales and then its sub-blocks of quants, all one ascending stream of 64-byte lines.
//!
//! A last step shorter than 256 elements has a shorter section and fewer sub-blocks.

use super::quants::{BLOCK, QuantLayout};
use super::scales::ScaleLayout;

/// 32-blocks per 256-block, the contract's level-1 chain.
pub(crate) const BLOCKS_PER_STEP: usize = 256 / BLOCK;

/// Where one 256-block of a panel lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// Byte of the scale section within the panel.
    pub section: usize,
    /// Byte of the first sub-block of quants.
    pub quants: usize,
    /// First 32-block along K.
    pub first_block: usize,
    /// 32-blocks in this step, 1..=8.
    pub num_blocks: usize,
}

/// Bytes of a step of `num_blocks` 32-blocks.
#[inline(always)]
pub(crate) fn step_bytes<Q: QuantLayout, S: ScaleLayout>(num_blocks: usize) -> usize {
    S::section_bytes(num_blocks) + num_blocks * Q::SUB_BLOCK_BYTES
}

/// Bytes of a whole panel with `num_blocks` 32-blocks along K.
pub(crate) fn panel_bytes<Q: QuantLayout, S: ScaleLayout>(num_blocks: usize) -> usize {
    let full = num_blocks / BLOCKS_PER_STEP * step_bytes::<Q, S>(BLOCKS_PER_STEP);
    match num_blocks % BLOCKS_PER_STEP {
        0 => full,
        rest => full + step_bytes::<Q, S>(rest),
    }
}

/// Step `index` of a panel with `num_blocks` 32-blocks along K.
#[inline(always)]
pub(crate) fn step<Q: QuantLayout, S: ScaleLayout>(num_blocks: usize, index: usize) -> Step {
    let first_block = index * BLOCKS_PER_STEP;
    let section = index * step_bytes::<Q, S>(BLOCKS_PER_STEP);
    let num_blocks = (num_blocks - first_block).min(BLOCKS_PER_STEP);
    Step {
        section,
        quants: section + S::section_bytes(num_blocks),
        first_block,
        num_blocks,
    }
}

/// Every step of a panel, ascending along K.
pub(crate) fn steps<Q: QuantLayout, S: ScaleLayout>(
    num_blocks: usize,
) -> impl Iterator<Item = Step> {
    (0..num_blocks.div_ceil(BLOCKS_PER_STEP)).map(move |index| step::<Q, S>(num_blocks, index))
}
