//! A weight matrix in the layout of the kernels, of any element type they read. Knows nothing of
//! files beyond the bytes it is given.

use super::arena::WeightArena;
use super::blocks::{self, BlockMatrix, ReadChunk};
use super::formats::packed_format;
use crate::float_matmul::{FloatMatrix, FloatType};
use crate::{Compute, Isa, ThreadPool};
use assay_formats::DType;
use std::num::NonZeroUsize;

/// Version of the panels' layout, the same for every instruction set. Whatever changes a byte of a panel raises it:
/// panels outlive a process where they are cached on disk.
pub const LAYOUT_VERSION: u32 = 1;

/// Why a matrix cannot be packed.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// No kernel reads this element type.
    #[error(
        "matrices of type {dtype} are not supported; requantise the file to one of {}",
        supported_names()
    )]
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
    /// A packed row does not hash to what its source did.
    #[error(
        "row {row} was not packed as the file has it: this machine's memory or CPU made an error (test the memory, \
         start again), or this is a bug to report"
    )]
    Damaged {
        /// The first such row.
        row: usize,
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
    storage: Storage,
}

/// How the weights are kept.
#[derive(Debug)]
pub(super) enum Storage {
    /// Quantised blocks in panels.
    Blocks(BlockMatrix),
    /// F32, F16 or BF16, interleaved.
    Floats(FloatMatrix),
}

impl PackedMatrix {
    /// Packs a matrix from its GGUF bytes: `n` rows of `k` elements, row-major blocks of `dtype`. Quantised
    /// rows are hashed on the way and their panels read back.
    ///
    /// # Errors
    /// [`PackError`]: the type has no kernel, a dimension is zero, `k` is not whole blocks, `bytes`
    /// has another length, there is no memory, or a panel is not what was packed.
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
        let row_bytes = check_shape(dtype, n, k, bytes)?;
        let storage = match (float_type(dtype), packed_format(dtype)) {
            (Some(float_type), _) => Storage::Floats(
                FloatMatrix::from_le_bytes(float_type, n, k, bytes)
                    .expect("check_shape matched the bytes with the shape"),
            ),
            (None, Some(format)) => Storage::Blocks(BlockMatrix::pack(
                arena, cx, format, n, k, bytes, row_bytes,
            )?),
            (None, None) => return Err(PackError::UnsupportedType { dtype }),
        };
        Ok(Self {
            dtype,
            n,
            k,
            storage,
        })
    }

    /// Bytes of [`PackedMatrix::panels`] of such a matrix; `None` when its type is not kept in panels, or the shape is
    /// not one of whole blocks.
    pub fn panels_len(dtype: DType, n: usize, k: usize) -> Option<usize> {
        let format = packed_format(dtype)?;
        if n == 0 || k == 0 || !k.is_multiple_of(dtype.block_len()) {
            return None;
        }
        blocks::total_bytes(format, n, k)
    }

    /// The packed bytes, where the type is kept in panels: what [`PackedMatrix::read_in`] takes back.
    pub fn panels(&self) -> Option<&[u8]> {
        match &self.storage {
            Storage::Blocks(blocks) => Some(blocks.panels()),
            Storage::Floats(_) => None,
        }
    }

    /// A matrix from panels packed before, on the threads of `cx`: `read` fills each chunk of `chunk_bytes` (fewer at
    /// the end) and says whether it could. `Ok(None)` when it could not fill one.
    ///
    /// The caller answers for the bytes: any bytes give some matrix, only the packed ones give the right one.
    ///
    /// # Errors
    /// [`PackError::UnsupportedType`] when the type is not kept in panels, [`PackError::InvalidShape`],
    /// [`PackError::OutOfMemory`].
    ///
    /// # Panics
    /// When `chunk_bytes` is zero.
    pub fn read_in(
        arena: &mut WeightArena,
        cx: &Compute,
        dtype: DType,
        n: usize,
        k: usize,
        chunk_bytes: usize,
        read: &ReadChunk<'_>,
    ) -> Result<Option<Self>, PackError> {
        let format = packed_format(dtype).ok_or(PackError::UnsupportedType { dtype })?;
        if Self::panels_len(dtype, n, k).is_none() {
            return Err(PackError::InvalidShape { n, k });
        }
        let matrix = BlockMatrix::read(arena, cx, format, n, k, chunk_bytes, read)?;
        Ok(matrix.map(|blocks| Self {
            dtype,
            n,
            k,
            storage: Storage::Blocks(blocks),
        }))
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
        match &self.storage {
            Storage::Blocks(blocks) => blocks.panels().len(),
            Storage::Floats(_) => {
                self.n.next_multiple_of(super::quants::PANEL_ROWS)
                    * self.k
                    * self.dtype.block_bytes()
            }
        }
    }

    /// Writes row `index` as f32 by the contract's embedding rule: `f32(q)·w_j`, with an offset
    /// `fma(f32(q), w_j, n_j)`. A tied embedding table is stored once this way.
    ///
    /// # Panics
    /// When there is no such row, or `out` is not `k` long.
    pub fn row_into(&self, index: usize, out: &mut [f32]) {
        assert!(index < self.n, "row {index} of {}", self.n);
        assert_eq!(out.len(), self.k, "length of a row");
        match &self.storage {
            Storage::Blocks(blocks) => blocks.row_into(index, out),
            Storage::Floats(floats) => floats.copy_row(index, out),
        }
    }

    /// The elements of a float matrix as they are kept, `[n / 16, k, 16]`; nothing of a quantised one.
    pub(super) fn float_bytes(&self) -> Vec<u8> {
        match &self.storage {
            Storage::Blocks(_) => Vec::new(),
            Storage::Floats(floats) => floats.to_le_bytes(),
        }
    }

    pub(super) fn storage(&self) -> &Storage {
        &self.storage
    }
}

/// Every element type that can be packed, in the order of their numbers.
pub fn supported_types() -> impl Iterator<Item = DType> {
    let supported = |dtype: &DType| float_type(*dtype).is_some() || packed_format(*dtype).is_some();
    DType::ALL.iter().copied().filter(supported)
}

/// Their names, for an error.
fn supported_names() -> String {
    supported_types()
        .map(DType::name)
        .collect::<Vec<_>>()
        .join(", ")
}

/// The float kernels' name of `dtype`, if it is unquantised and they read it.
fn float_type(dtype: DType) -> Option<FloatType> {
    match dtype {
        DType::F32 => Some(FloatType::F32),
        DType::F16 => Some(FloatType::F16),
        DType::BF16 => Some(FloatType::BF16),
        _ => None,
    }
}

/// The bytes of a row, once the type has a kernel and the shape fits the bytes.
fn check_shape(dtype: DType, n: usize, k: usize, bytes: &[u8]) -> Result<usize, PackError> {
    if float_type(dtype).is_none() && packed_format(dtype).is_none() {
        return Err(PackError::UnsupportedType { dtype });
    }
    if n == 0 || k == 0 {
        return Err(PackError::InvalidShape { n, k });
    }
    let block_elements = dtype.block_len();
    if !k.is_multiple_of(block_elements) {
        return Err(PackError::PartialBlock {
            dtype,
            k,
            block_elements,
        });
    }
    let row_bytes = (k / block_elements).checked_mul(dtype.block_bytes());
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
    Ok(expected / n)
}
