//! Tensor descriptions: name, shape, type, and the checked byte range of the data.
//!
//! A description that leaves here points inside the file, is aligned, whole in blocks, and shares no byte with
//! another tensor (the format gives each tensor its own bytes; sharing means that the file was edited or is damaged).

use super::cursor::Cursor;
use super::error::{GgufError, Ordinal, Place, Problem};
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
pub(super) struct RawTensor {
    /// Its `byte_offset` is still relative to the data section.
    info: TensorInfo,
    ordinal: Ordinal,
    /// Where the description begins in the file.
    at: u64,
    /// Where its offset field stands.
    offset_at: u64,
}

impl RawTensor {
    pub(super) fn read(cursor: &mut Cursor<'_>, ordinal: Ordinal) -> Result<RawTensor, GgufError> {
        let at = cursor.offset();
        let name_place = |field| {
            move || Place::Tensor {
                ordinal,
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
            ordinal,
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
        let byte_offset = cursor.u64(|| place("offset", None))?;

        let info = TensorInfo {
            name: name.to_owned(),
            dtype,
            shape,
            byte_offset,
            byte_len,
        };
        Ok(RawTensor {
            info,
            ordinal,
            at,
            offset_at,
        })
    }

    fn place(&self, field: &'static str) -> Place {
        let name = Some(self.info.name.clone());
        Place::Tensor {
            ordinal: self.ordinal,
            name,
            field,
            dimension: None,
        }
    }

    /// The data's offset from the start of the file, once alignment and range are checked.
    fn absolute_offset(&self, layout: &DataLayout) -> Result<u64, Problem> {
        let &DataLayout {
            alignment,
            data_offset,
            file_len,
        } = layout;
        let TensorInfo {
            byte_offset: offset,
            byte_len: len,
            ..
        } = self.info;
        if !offset.is_multiple_of(alignment.into()) {
            return Err(Problem::Misaligned {
                found: offset,
                alignment,
            });
        }
        let begin = data_offset.checked_add(offset);
        match begin.and_then(|begin| Some((begin, begin.checked_add(len)?))) {
            Some((begin, end)) if end <= file_len => Ok(begin),
            _ => Err(Problem::DataPastEnd {
                offset,
                len,
                data_offset,
                file_len,
            }),
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
    mut raw: Vec<RawTensor>,
    layout: &DataLayout,
) -> Result<Vec<TensorInfo>, GgufError> {
    refuse_duplicates(&raw)?;
    for tensor in &mut raw {
        tensor.info.byte_offset = tensor
            .absolute_offset(layout)
            .map_err(|problem| tensor.place("offset").problem(tensor.offset_at, problem))?;
    }
    refuse_overlaps(&raw)?;
    Ok(raw.into_iter().map(|tensor| tensor.info).collect())
}

fn refuse_duplicates(raw: &[RawTensor]) -> Result<(), GgufError> {
    let mut by_name: Vec<&RawTensor> = raw.iter().collect();
    by_name.sort_by(|a, b| a.info.name.cmp(&b.info.name));
    for pair in by_name.windows(2) {
        if let [first, second] = pair
            && first.info.name == second.info.name
        {
            let problem = Problem::Duplicate { first: first.at };
            return Err(second.place("name").problem(second.at, problem));
        }
    }
    Ok(())
}

/// Expects offsets that are already checked, so that no sum here can overflow.
fn refuse_overlaps(raw: &[RawTensor]) -> Result<(), GgufError> {
    let mut by_offset: Vec<&RawTensor> = raw.iter().collect();
    by_offset.sort_by_key(|tensor| tensor.info.byte_offset);
    for pair in by_offset.windows(2) {
        if let [first, second] = pair
            && first.info.byte_offset + first.info.byte_len > second.info.byte_offset
        {
            let problem = Problem::Overlap {
                other: first.info.name.clone(),
            };
            return Err(second.place("offset").problem(second.offset_at, problem));
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
