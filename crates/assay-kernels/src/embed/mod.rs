//! Token embeddings: rows of a table as f32, `f32(q)·w_j` or with an offset `fma(f32(q), w_j, n_j)`.
//!
//! Class: exact; the values are those of the file's blocks, from the raw bytes or from a packed
//! matrix (a table tied to the head is stored once). Scaling by √hidden is the model's business.

pub mod cuda;
pub(crate) mod golden;

use crate::matmul::PackedMatrix;
use assay_formats::DType;
use assay_formats::quant::{QuantError, dequantize};

/// Why rows could not be looked up.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    /// A token id has no row.
    #[error("token id {token_id} is outside the table of {num_rows} rows")]
    TokenOutOfRange {
        /// The id.
        token_id: u32,
        /// Rows of the table.
        num_rows: usize,
    },
    /// The table's bytes are not whole rows of `k` elements.
    #[error("{found} bytes are not {num_rows} rows of {k} {dtype} elements")]
    WrongByteCount {
        /// The table's element type.
        dtype: DType,
        /// Rows.
        num_rows: usize,
        /// Elements of a row.
        k: usize,
        /// Bytes given.
        found: usize,
    },
    /// The table's element type or row length has no exact values.
    #[error("embedding table: {0}")]
    Quant(#[from] QuantError),
}

/// A table of rows in the bytes of a GGUF tensor.
#[derive(Clone, Copy, Debug)]
pub struct RawTable<'a> {
    dtype: DType,
    num_rows: usize,
    k: usize,
    row_bytes: usize,
    bytes: &'a [u8],
}

impl<'a> RawTable<'a> {
    /// A table of `num_rows` rows of `k` elements.
    ///
    /// # Errors
    /// [`EmbedError`] when `k` is not whole blocks, the length does not match, or the type has no
    /// formula.
    pub fn new(
        dtype: DType,
        num_rows: usize,
        k: usize,
        bytes: &'a [u8],
    ) -> Result<Self, EmbedError> {
        let wrong = EmbedError::WrongByteCount {
            dtype,
            num_rows,
            k,
            found: bytes.len(),
        };
        let row_bytes = dtype
            .row_bytes(k)
            .ok_or(QuantError::PartialBlock { dtype, len: k })?;
        if k == 0 || row_bytes.checked_mul(num_rows) != Some(bytes.len()) {
            return Err(wrong);
        }
        // No values asked for: this only says whether the type has a formula.
        dequantize(dtype, &[], &mut [])?;
        Ok(Self {
            dtype,
            num_rows,
            k,
            row_bytes,
            bytes,
        })
    }

    fn row_into(&self, index: usize, out: &mut [f32]) -> Result<(), EmbedError> {
        let bytes = &self.bytes[index * self.row_bytes..][..self.row_bytes];
        Ok(dequantize(self.dtype, bytes, out)?)
    }
}

/// Where rows come from.
#[derive(Clone, Copy, Debug)]
pub enum EmbeddingTable<'a> {
    /// The file's bytes.
    Raw(RawTable<'a>),
    /// A matrix packed for [`matmul`](crate::matmul::matmul()), such as a tied head.
    Packed(&'a PackedMatrix),
}

impl EmbeddingTable<'_> {
    /// Rows: the vocabulary.
    pub fn num_rows(&self) -> usize {
        match self {
            Self::Raw(table) => table.num_rows,
            Self::Packed(matrix) => matrix.n(),
        }
    }

    /// Elements of a row.
    pub fn k(&self) -> usize {
        match self {
            Self::Raw(table) => table.k,
            Self::Packed(matrix) => matrix.k(),
        }
    }
}

/// Writes the rows of `token_ids` to `out`, `[num_tokens, k]` row-major.
///
/// # Errors
/// [`EmbedError::TokenOutOfRange`] for an id without a row; `out` is then partly written.
///
/// # Panics
/// When `out` is not `token_ids.len() · k` long.
pub fn embed(
    table: &EmbeddingTable<'_>,
    token_ids: &[u32],
    out: &mut [f32],
) -> Result<(), EmbedError> {
    assert_eq!(
        out.len(),
        token_ids.len() * table.k(),
        "length of the embeddings"
    );
    let num_rows = table.num_rows();
    for (&token_id, row) in token_ids.iter().zip(out.chunks_exact_mut(table.k())) {
        let index = usize::try_from(token_id)
            .ok()
            .filter(|&index| index < num_rows);
        let index = index.ok_or(EmbedError::TokenOutOfRange { token_id, num_rows })?;
        match table {
            EmbeddingTable::Raw(table) => table.row_into(index, row)?,
            EmbeddingTable::Packed(matrix) => matrix.row_into(index, row),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{SeededGenerator, check_bits_equal};

    /// A table with finite scales: the f16 fields at the start of each block are small.
    fn table_bytes(dtype: DType, num_rows: usize, k: usize) -> Vec<u8> {
        let mut bytes = SeededGenerator::new(1).bytes(dtype.row_bytes(k).unwrap() * num_rows);
        for block in bytes.chunks_exact_mut(dtype.block_bytes()) {
            block[1] = 0x2C;
            block[3] = 0x1C;
        }
        bytes
    }

    #[test]
    fn raw_and_packed_tables_agree() {
        let (num_rows, k, ids) = (37, 512, [36, 0, 5, 5, 16]);
        for dtype in [
            DType::Q8_0,
            DType::Q4_1,
            DType::Q5K,
            DType::IQ1M,
            DType::MXFP4,
        ] {
            let bytes = table_bytes(dtype, num_rows, k);
            let packed = PackedMatrix::pack(dtype, num_rows, k, &bytes).unwrap();
            let raw = RawTable::new(dtype, num_rows, k, &bytes).unwrap();
            let (mut from_raw, mut from_packed) = (vec![0.0; 5 * k], vec![0.0; 5 * k]);
            embed(&EmbeddingTable::Raw(raw), &ids, &mut from_raw).unwrap();
            embed(&EmbeddingTable::Packed(&packed), &ids, &mut from_packed).unwrap();
            check_bits_equal(dtype.name(), &[5, k], &from_raw, &from_packed);
            let mut exact = vec![0.0; k];
            dequantize(dtype, &bytes[..dtype.row_bytes(k).unwrap()], &mut exact).unwrap();
            check_bits_equal(dtype.name(), &[k], &exact, &from_raw[k..2 * k]);
        }
    }

    #[test]
    fn what_has_no_row_is_an_error() {
        let bytes = table_bytes(DType::Q8_0, 4, 32);
        let table = EmbeddingTable::Raw(RawTable::new(DType::Q8_0, 4, 32, &bytes).unwrap());
        let found = embed(&table, &[3, 4], &mut [0.0; 64]);
        assert!(matches!(
            found,
            Err(EmbedError::TokenOutOfRange {
                token_id: 4,
                num_rows: 4
            })
        ));
        let found = embed(&table, &[u32::MAX], &mut [0.0; 32]);
        assert!(matches!(found, Err(EmbedError::TokenOutOfRange { .. })));
        let wrong = RawTable::new(DType::Q8_0, 5, 32, &bytes);
        assert!(matches!(
            wrong,
            Err(EmbedError::WrongByteCount { num_rows: 5, .. })
        ));
        let partial = RawTable::new(DType::Q8_0, 4, 33, &bytes);
        assert!(matches!(partial, Err(EmbedError::Quant(_))));
        let unsupported = RawTable::new(DType::TQ1_0, 0, 256, &[]);
        assert!(matches!(
            unsupported,
            Err(EmbedError::Quant(QuantError::Unsupported { .. }))
        ));
    }
}
