//! Tensor descriptions: name, shape, type, and the checked byte range of the data.
//!
//! A description that leaves here points inside the file, is aligned, whole in blocks, and shares no byte with
//! another tensor (the format gives each tensor its own bytes; sharing means that the file was edited or is damaged).

use super::cursor::Cursor;
use super::error::{GgufError, Place, Problem};
use crate::dtype::DType;

/// Longest tensor name accepted, as the format says.
const NAME_BYTES_MAX: u64 = 64;

/// Most tensors accepted. Real files have a few thousand; the cap bounds the fixed cost per tensor.
pub(super) const TENSORS_MAX: u64 = 262_144;

/// The least a description can take: name length, a byte of name, one dimension, type, offset.
pub(super) const TENSOR_BYTES_MIN: u64 = 8 + 1 + 4 + 8 + 4 + 8;

const DIMENSIONS_MAX: u32 = 4;

/// One tensor of a file: what it is called, its shape and type, and where its bytes lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorInfo {
    /// Name in the file, such as `blk.0.attn_q.weight`.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// 1 to 4 dimensions, innermost (the contiguous row) first; none is 0.
    pub shape: Vec<u64>,
    /// Where the data begins, from the start of the file.
    pub byte_offset: u64,
    /// Length of the data in bytes; `byte_offset + byte_len` is at most the file's length.
    pub byte_len: u64,
}

impl TensorInfo {
    /// Elements in a row: the innermost dimension (K of a weight matrix).
    #[must_use]
    pub fn columns(&self) -> u64 {
        self.shape.first().copied().unwrap_or(0)
    }

    /// Number of rows: the product of all dimensions but the innermost.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.shape.iter().skip(1).product()
    }

    /// Number of elements.
    #[must_use]
    pub fn num_elements(&self) -> u64 {
        self.shape.iter().product()
    }
}

/// A description as it stands in the file, before the data section's start is known.
pub(super) struct RawTensor<'a> {
    name: &'a str,
    dtype: DType,
    shape: Vec<u64>,
    byte_len: u64,
    /// Relative to the data section.
    data_offset: u64,
    /// Where the description, and its offset field, stand in the file.
    at: u64,
    offset_at: u64,
}

impl<'a> RawTensor<'a> {
    pub(super) fn read(cursor: &mut Cursor<'a>, index: usize) -> Result<RawTensor<'a>, GgufError> {
        let at = cursor.offset();
        let name_place = |field| {
            move || Place::Tensor {
                index,
                name: None,
                field,
                dimension: None,
            }
        };
        let name = cursor.name(
            NAME_BYTES_MAX,
            name_place("name length"),
            name_place("name"),
        )?;
        let place = |field, dimension| Place::Tensor {
            index,
            name: Some(name.to_owned()),
            field,
            dimension,
        };

        let shape_at = cursor.offset();
        let shape = read_shape(cursor, &place)?;

        let dtype_at = cursor.offset();
        let found = cursor.u32(|| place("type", None))?;
        let dtype = DType::from_ggml(found)
            .ok_or_else(|| place("type", None).problem(dtype_at, Problem::TensorType { found }))?;

        let byte_len = byte_len(&shape, dtype)
            .map_err(|problem| place("shape", None).problem(shape_at, problem))?;
        let offset_at = cursor.offset();
        let data_offset = cursor.u64(|| place("offset", None))?;
        Ok(RawTensor {
            name,
            dtype,
            shape,
            byte_len,
            data_offset,
            at,
            offset_at,
        })
    }

    fn place(&self, index: usize, field: &'static str) -> Place {
        Place::Tensor {
            index,
            name: Some(self.name.to_owned()),
            field,
            dimension: None,
        }
    }

    /// The description with its absolute byte range, checked against the file.
    fn resolve(&self, index: usize, layout: &DataLayout) -> Result<TensorInfo, GgufError> {
        let problem = |problem| self.place(index, "offset").problem(self.offset_at, problem);
        if !self.data_offset.is_multiple_of(layout.alignment.into()) {
            return Err(problem(Problem::Misaligned {
                found: self.data_offset,
                alignment: layout.alignment,
            }));
        }
        let begin = layout.data_offset.checked_add(self.data_offset);
        let end = begin.and_then(|begin| begin.checked_add(self.byte_len));
        match (begin, end) {
            (Some(byte_offset), Some(end)) if end <= layout.file_len => Ok(TensorInfo {
                name: self.name.to_owned(),
                dtype: self.dtype,
                shape: self.shape.clone(),
                byte_offset,
                byte_len: self.byte_len,
            }),
            _ => Err(problem(Problem::DataPastEnd {
                offset: self.data_offset,
                len: self.byte_len,
                data_offset: layout.data_offset,
                file_len: layout.file_len,
            })),
        }
    }
}

/// Where tensor data may lie.
pub(super) struct DataLayout {
    pub(super) alignment: u32,
    pub(super) data_offset: u64,
    pub(super) file_len: u64,
}

/// Turns descriptions into byte ranges; refuses duplicate names and overlapping data.
pub(super) fn resolve(
    raw: &[RawTensor<'_>],
    layout: &DataLayout,
) -> Result<Vec<TensorInfo>, GgufError> {
    refuse_duplicates(raw)?;
    let tensors: Vec<TensorInfo> = raw
        .iter()
        .enumerate()
        .map(|(index, tensor)| tensor.resolve(index, layout))
        .collect::<Result<_, _>>()?;
    refuse_overlaps(raw, &tensors)?;
    Ok(tensors)
}

fn refuse_duplicates(raw: &[RawTensor<'_>]) -> Result<(), GgufError> {
    let mut by_name: Vec<(usize, &RawTensor<'_>)> = raw.iter().enumerate().collect();
    by_name.sort_by_key(|(_, tensor)| tensor.name);
    for pair in by_name.windows(2) {
        if let [(_, first), (index, second)] = pair
            && first.name == second.name
        {
            return Err(second
                .place(*index, "name")
                .problem(second.at, Problem::Duplicate { first: first.at }));
        }
    }
    Ok(())
}

fn refuse_overlaps(raw: &[RawTensor<'_>], tensors: &[TensorInfo]) -> Result<(), GgufError> {
    let mut by_offset: Vec<(usize, &TensorInfo, &RawTensor<'_>)> = tensors
        .iter()
        .zip(raw)
        .enumerate()
        .map(|(index, (tensor, raw))| (index, tensor, raw))
        .collect();
    by_offset.sort_by_key(|(_, tensor, _)| tensor.byte_offset);
    for pair in by_offset.windows(2) {
        if let [(_, first, _), (index, second, raw)] = pair
            && first.byte_offset + first.byte_len > second.byte_offset
        {
            let problem = Problem::Overlap {
                other: first.name.clone(),
            };
            return Err(raw.place(*index, "offset").problem(raw.offset_at, problem));
        }
    }
    Ok(())
}

fn read_shape(
    cursor: &mut Cursor<'_>,
    place: &impl Fn(&'static str, Option<usize>) -> Place,
) -> Result<Vec<u64>, GgufError> {
    let at = cursor.offset();
    let found = cursor.u32(|| place("number of dimensions", None))?;
    if !(1..=DIMENSIONS_MAX).contains(&found) {
        return Err(
            place("number of dimensions", None).problem(at, Problem::DimensionCount { found })
        );
    }
    let mut shape = Vec::with_capacity(found as usize);
    for dimension in 0..found as usize {
        let at = cursor.offset();
        let size = cursor.u64(|| place("dimension", Some(dimension)))?;
        let problem = match size {
            0 => Problem::Zero,
            size if size > i64::MAX.cast_unsigned() => Problem::Negative {
                found: size.cast_signed(),
            },
            size => {
                shape.push(size);
                continue;
            }
        };
        return Err(place("dimension", Some(dimension)).problem(at, problem));
    }
    Ok(shape)
}

/// Bytes of a tensor whose rows are whole blocks.
fn byte_len(shape: &[u64], dtype: DType) -> Result<u64, Problem> {
    let overflow = || Problem::Overflow {
        shape: shape.to_vec(),
    };
    let row = shape.first().copied().unwrap_or(0);
    let block_len = dtype.block_len() as u64;
    if !row.is_multiple_of(block_len) {
        return Err(Problem::PartialBlock { row, dtype });
    }
    // The element count must fit too: a shape may overflow in elements and not in bytes.
    let elements = shape
        .iter()
        .try_fold(1_u64, |product, &size| product.checked_mul(size))
        .ok_or_else(overflow)?;
    (elements / block_len)
        .checked_mul(dtype.block_bytes() as u64)
        .ok_or_else(overflow)
}
