//! A weight matrix in the layout of the kernels: a pure permutation of the file's quants with the
//! file's scales, 16 rows side by side. Knows nothing of files beyond the bytes it is given.

use super::arena::{PanelBuffer, WeightArena};
use super::checksum;
use super::formats::{PackedFormat, packed_format};
use super::quants::{BLOCK, PANEL_ROWS};
use crate::disjoint::DisjointSlice;
use crate::{Compute, Isa, ThreadPool};
use assay_formats::DType;
use std::num::NonZeroUsize;

/// Why a matrix cannot be packed.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// No kernel reads this element type.
    #[error("matrices of type {dtype} are not supported")]
    UnsupportedType {
        /// The matrix's element type.
        dtype: DType,
    },
    /// A dimension is zero, or the packed size does not fit the address space.
    #[error("a matrix of {n} rows of {k} elements has no valid size")]
    InvalidShape {
        /// Rows.
        n: usize,
        /// Elements of a row.
        k: usize,
    },
    /// Rows are not whole blocks.
    #[error("rows of {k} elements are not whole {dtype} blocks of {block_elements}")]
    PartialBlock {
        /// The matrix's element type.
        dtype: DType,
        /// Elements of a row.
        k: usize,
        /// Elements of a block.
        block_elements: usize,
    },
    /// The bytes are not `n` rows of `k` elements.
    #[error("{n} rows of {k} {dtype} elements take {expected} bytes, not {found}")]
    WrongByteCount {
        /// The matrix's element type.
        dtype: DType,
        /// Rows.
        n: usize,
        /// Elements of a row.
        k: usize,
        /// Bytes such a matrix has.
        expected: usize,
        /// Bytes given.
        found: usize,
    },
    /// The system refused the memory.
    #[error("no memory for {bytes} bytes of packed weights")]
    OutOfMemory {
        /// Bytes asked for.
        bytes: usize,
        /// The system's answer.
        source: std::io::Error,
    },
}

/// A weight matrix `[n, k]`, ready for [`matmul`](super::matmul()).
#[derive(Debug)]
pub struct PackedMatrix {
    dtype: DType,
    n: usize,
    k: usize,
    format: &'static dyn PackedFormat,
    panel_bytes: usize,
    panels: PanelBuffer,
}

impl PackedMatrix {
    /// Packs a matrix from its GGUF bytes: `n` rows of `k` elements, row-major blocks of `dtype`.
    ///
    /// # Errors
    /// [`PackError`]: the type has no kernel, a dimension is zero, `k` is not whole blocks, `bytes`
    /// has another length, or there is no memory.
    pub fn pack(dtype: DType, n: usize, k: usize, bytes: &[u8]) -> Result<Self, PackError> {
        let cx = Compute::new(Isa::SCALAR, ThreadPool::new(NonZeroUsize::MIN));
        Self::pack_in(&mut WeightArena::new(), &cx, dtype, n, k, bytes)
    }

    /// [`PackedMatrix::pack`] on the threads of `cx`, into an arena that the matrices of a model
    /// share.
    ///
    /// # Errors
    /// As [`PackedMatrix::pack`].
    pub fn pack_in(
        arena: &mut WeightArena,
        cx: &Compute,
        dtype: DType,
        n: usize,
        k: usize,
        bytes: &[u8],
    ) -> Result<Self, PackError> {
        let (format, row_bytes) = check_shape(dtype, n, k, bytes)?;
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
            dtype,
            n,
            k,
            format,
            panel_bytes,
            panels,
        })
    }

    /// Element type of the source.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Rows: elements of an output.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Elements of a row and of an input.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Bytes the packed matrix occupies: what one decoded token reads.
    pub fn num_bytes(&self) -> usize {
        self.panels.bytes().len()
    }

    /// Writes row `index` as f32 by the contract's embedding rule: `f32(q)·w_j`, with an offset
    /// `fma(f32(q), w_j, n_j)`. A tied embedding table is stored once this way.
    ///
    /// # Panics
    /// When there is no such row, or `out` is not `k` long.
    pub fn row_into(&self, index: usize, out: &mut [f32]) {
        assert!(index < self.n, "row {index} of {}", self.n);
        assert_eq!(out.len(), self.k, "length of a row");
        self.format
            .read_row(self.panel(index / PANEL_ROWS), index % PANEL_ROWS, out);
    }

    /// Checksum of the quants and scales held here; equals [`PackedMatrix::source_checksum`] of the
    /// bytes it was packed from when packing lost nothing.
    pub fn checksum(&self) -> u64 {
        checksum::combine((0..self.n).map(|row| {
            let panel = self.panel(row / PANEL_ROWS);
            self.format
                .hash_packed_row(panel, self.k / BLOCK, row % PANEL_ROWS)
        }))
    }

    /// Checksum of the quants and scales of a matrix's GGUF bytes.
    ///
    /// # Errors
    /// As [`PackedMatrix::pack`].
    pub fn source_checksum(
        dtype: DType,
        n: usize,
        k: usize,
        bytes: &[u8],
    ) -> Result<u64, PackError> {
        let (format, row_bytes) = check_shape(dtype, n, k, bytes)?;
        let rows = bytes.chunks_exact(row_bytes);
        Ok(checksum::combine(rows.map(|row| format.hash_raw_row(row))))
    }

    pub(super) fn format(&self) -> &'static dyn PackedFormat {
        self.format
    }

    pub(super) fn panels(&self) -> (&[u8], usize) {
        (self.panels.bytes(), self.panel_bytes)
    }

    fn panel(&self, group: usize) -> &[u8] {
        &self.panels.bytes()[group * self.panel_bytes..][..self.panel_bytes]
    }
}

/// The format and the bytes of a row, once the shape is known to fit the bytes.
fn check_shape(
    dtype: DType,
    n: usize,
    k: usize,
    bytes: &[u8],
) -> Result<(&'static dyn PackedFormat, usize), PackError> {
    let format = packed_format(dtype).ok_or(PackError::UnsupportedType { dtype })?;
    if n == 0 || k == 0 {
        return Err(PackError::InvalidShape { n, k });
    }
    let (block_elements, block_bytes) = (dtype.block_len(), dtype.block_bytes());
    if !k.is_multiple_of(block_elements) {
        return Err(PackError::PartialBlock {
            dtype,
            k,
            block_elements,
        });
    }
    let row_bytes = (k / block_elements).checked_mul(block_bytes);
    let expected = row_bytes
        .and_then(|row_bytes| row_bytes.checked_mul(n))
        .ok_or(PackError::InvalidShape { n, k })?;
    if bytes.len() != expected {
        let found = bytes.len();
        return Err(PackError::WrongByteCount {
            dtype,
            n,
            k,
            expected,
            found,
        });
    }
    Ok((format, expected / n))
}
