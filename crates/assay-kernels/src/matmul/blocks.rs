//! A quantised matrix in panels: a pure permutation of the file's quants with the file's scales,
//! 16 rows side by side.

use super::PackError;
use super::arena::{PanelBuffer, WeightArena};
use super::formats::PackedFormat;
use super::quants::{BLOCK, PANEL_ROWS};
use crate::Compute;
use crate::disjoint::DisjointSlice;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Fills a chunk (by number) with bytes that were packed before; whether it could. Called from several threads.
pub(super) type ReadChunk<'a> = dyn Fn(usize, &mut [u8]) -> bool + Sync + 'a;

/// Bytes of all panels of a matrix `[n, k]`, where that fits the address space.
pub(super) fn total_bytes(format: &dyn PackedFormat, n: usize, k: usize) -> Option<usize> {
    n.div_ceil(PANEL_ROWS)
        .checked_mul(format.panel_bytes(k / BLOCK))
}

/// Panels of a matrix `[n, k]`; shapes were checked by whoever packed it.
#[derive(Debug)]
pub(super) struct BlockMatrix {
    format: &'static dyn PackedFormat,
    panel_bytes: usize,
    panels: PanelBuffer,
}

impl BlockMatrix {
    /// Packs `n` rows of `row_bytes` bytes each on the threads of `cx`, and reads every panel back.
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
        let mut matrix = Self::zeroed(arena, format, n, k)?;
        let panel_bytes = matrix.panel_bytes;
        let num_groups = n.div_ceil(PANEL_ROWS);
        let shared = DisjointSlice::new(matrix.panels.bytes_mut());
        let first_damaged = AtomicUsize::new(usize::MAX);
        cx.pool.run(num_groups, &|group| {
            // SAFETY: each group is one task and panels are disjoint.
            let panel = unsafe { shared.part(group * panel_bytes, panel_bytes) };
            let rows = bytes[group * PANEL_ROWS * row_bytes..].chunks_exact(row_bytes);
            let mut hashes = [None; PANEL_ROWS];
            for ((row, raw_row), hash) in rows.enumerate().zip(&mut hashes) {
                *hash = Some(format.pack_row(raw_row, num_blocks, panel, row));
            }
            // The panel is in the caches still.
            let found = format.panel_hashes(cx.isa, panel, num_blocks);
            let differs = |(hash, found): (&Option<u32>, u32)| hash.is_some_and(|h| h != found);
            if let Some(row) = hashes.iter().zip(found).position(differs) {
                first_damaged.fetch_min(group * PANEL_ROWS + row, Ordering::Relaxed);
            }
        });
        match first_damaged.into_inner() {
            usize::MAX => Ok(matrix),
            row => Err(PackError::Damaged { row }),
        }
    }

    /// Takes panels that were packed before: `read` fills each chunk of `chunk_bytes`, on the threads of `cx`.
    /// `None` when it could not fill one.
    pub(super) fn read(
        arena: &mut WeightArena,
        cx: &Compute,
        format: &'static dyn PackedFormat,
        n: usize,
        k: usize,
        chunk_bytes: usize,
        read: &ReadChunk<'_>,
    ) -> Result<Option<Self>, PackError> {
        let mut matrix = Self::zeroed(arena, format, n, k)?;
        let total = matrix.panels().len();
        let shared = DisjointSlice::new(matrix.panels.bytes_mut());
        let failed = AtomicBool::new(false);
        cx.pool.run(total.div_ceil(chunk_bytes), &|chunk| {
            let start = chunk * chunk_bytes;
            // SAFETY: each chunk is one task and chunks are disjoint.
            let bytes = unsafe { shared.part(start, chunk_bytes.min(total - start)) };
            if !failed.load(Ordering::Relaxed) && !read(chunk, bytes) {
                failed.store(true, Ordering::Relaxed);
            }
        });
        Ok((!failed.into_inner()).then_some(matrix))
    }

    /// A matrix whose panels are all zero, to be filled.
    fn zeroed(
        arena: &mut WeightArena,
        format: &'static dyn PackedFormat,
        n: usize,
        k: usize,
    ) -> Result<Self, PackError> {
        let bytes = total_bytes(format, n, k).ok_or(PackError::InvalidShape { n, k })?;
        let panels = arena
            .allocate(bytes)
            .map_err(|source| PackError::OutOfMemory { bytes, source })?;
        Ok(Self {
            format,
            panel_bytes: format.panel_bytes(k / BLOCK),
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

    fn panel_of(&self, row: usize) -> &[u8] {
        &self.panels()[row / PANEL_ROWS * self.panel_bytes..][..self.panel_bytes]
    }
}
