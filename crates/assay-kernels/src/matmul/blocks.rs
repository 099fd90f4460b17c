//! A quantised matrix in panels: a pure permutation of the file's quants with the file's scales,
//! 16 rows side by side.

use super::PackError;
use super::arena::{PanelBuffer, WeightArena};
use super::formats::PackedFormat;
use super::quants::{BLOCK, PANEL_ROWS};
use crate::Compute;
use crate::disjoint::DisjointSlice;

/// Panels of a matrix `[n, k]`; shapes were checked by whoever packed it.
#[derive(Debug)]
pub(super) struct BlockMatrix {
    format: &'static dyn PackedFormat,
    k: usize,
    panel_bytes: usize,
    panels: PanelBuffer,
}

impl BlockMatrix {
    /// Packs `n` rows of `row_bytes` bytes each on the threads of `cx`.
    pub(super) fn pack(
        arena: &mut WeightArena,
        cx: &Compute,
        format: &'static dyn PackedFormat,
        n: usize,
        k: usize,
        bytes: &[u8],
        row_bytes: usize,
    ) -> Result<Self, PackError> {
        let num_blocks = k / BLOCK;
        let panel_bytes = format.panel_bytes(num_blocks);
        let num_groups = n.div_ceil(PANEL_ROWS);
        let total = num_groups
            .checked_mul(panel_bytes)
            .ok_or(PackError::InvalidShape { n, k })?;
        let mut panels = arena
            .allocate(total)
            .map_err(|source| PackError::OutOfMemory {
                bytes: total,
                source,
            })?;
        let shared = DisjointSlice::new(panels.bytes_mut());
        cx.pool.run(num_groups, &|group| {
            // SAFETY: each group is one task and panels are disjoint.
            let panel = unsafe { shared.part(group * panel_bytes, panel_bytes) };
            let rows = bytes[group * PANEL_ROWS * row_bytes..].chunks_exact(row_bytes);
            for (row, raw_row) in rows.take(PANEL_ROWS).enumerate() {
                format.pack_row(raw_row, num_blocks, panel, row);
            }
        });
        Ok(Self {
            format,
            k,
            panel_bytes,
            panels,
        })
    }

    pub(super) fn format(&self) -> &'static dyn PackedFormat {
        self.format
    }

    pub(super) fn panel_bytes(&self) -> usize {
        self.panel_bytes
    }

    /// Every panel, one after another.
    pub(super) fn panels(&self) -> &[u8] {
        self.panels.bytes()
    }

    /// Row `index` as f32 by the embedding rule.
    pub(super) fn row_into(&self, index: usize, out: &mut [f32]) {
        self.format
            .read_row(self.panel_of(index), index % PANEL_ROWS, out);
    }

    /// Hash of the quants and scales of row `index`.
    pub(super) fn row_hash(&self, index: usize) -> u64 {
        let panel = self.panel_of(index);
        self.format
            .hash_packed_row(panel, self.k / BLOCK, index % PANEL_ROWS)
    }

    fn panel_of(&self, row: usize) -> &[u8] {
        &self.panels()[row / PANEL_ROWS * self.panel_bytes..][..self.panel_bytes]
    }
}
