//! Tensor descriptions: name, shape, type, and the checked byte range of the data.
//!
//! A description that leaves here points inside the file, is aligned, whole in blocks, and shares no byte with
//! another tensor (the format gives each tensor its own bytes; sharing means that the file was edited or is damaged).

use super::cursor::Cursor;
use super::error::{GgufError, Ordinal, Place, Problem};
use super::shape::{DIMENSIONS_MAX, Shape};
use crate::dtype::DType;

/// Longest tensor name accepted, as the format says.
const NAME_BYTES_MAX: u64 = 64;

/// One tensor of a file: what it is called, its shape and type, and where its bytes lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TensorInfo<'a> {
    /// Name in the file, such as `blk.0.attn_q.weight`.
    pub name: &'a str,
    /// Element type.
    pub dtype: DType,
    /// 1 to 4 dimensions, innermost (the contiguous row) first; none is 0.
    pub shape: Shape,
    /// Where the data begins, from the start of the file.
    pub byte_offset: u64,
    /// Length of the data in bytes; `byte_offset + byte_len` is at most the file's length.
    pub byte_len: u64,
}

impl TensorInfo<'_> {
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

/// A description as it stands in the file, before its offset is checked.
pub(super) struct Description<'a> {
    /// Its `byte_offset` is still relative to the data section.
    pub(super) info: TensorInfo<'a>,
    ordinal: Ordinal,
    /// Where the description begins in the file.
    pub(super) at: u64,
    /// Where its offset field stands.
    pub(super) offset_at: u64,
}

impl<'a> Description<'a> {
    /// Reads the description at `cursor`, which ends behind it, and checks what needs no other description.
    pub(super) fn read(
        cursor: &mut Cursor<'a>,
        ordinal: Ordinal,
    ) -> Result<Description<'a>, GgufError> {
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
            name,
            dtype,
            shape,
            byte_offset,
            byte_len,
        };
        Ok(Description {
            info,
            ordinal,
            at,
            offset_at,
        })
    }

    /// The error that `problem` at byte `at` is for a field of this description.
    pub(super) fn problem(&self, field: &'static str, at: u64, problem: Problem) -> GgufError {
        let place = Place::Tensor {
            ordinal: self.ordinal,
            name: Some(self.info.name.to_owned()),
            field,
            dimension: None,
        };
        place.problem(at, problem)
    }

    /// The tensor with its offset from the start of the file, once alignment and range are checked.
    pub(super) fn resolve(&self, layout: &DataLayout) -> Result<TensorInfo<'a>, Problem> {
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
            Some((begin, end)) if end <= file_len => Ok(TensorInfo {
                byte_offset: begin,
                ..self.info
            }),
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
#[derive(Debug, Clone, Copy)]
pub(super) struct DataLayout {
    pub(super) alignment: u32,
    pub(super) data_offset: u64,
    pub(super) file_len: u64,
}

fn read_shape(
    cursor: &mut Cursor<'_>,
    place: &impl Fn(&'static str, Option<usize>) -> Place,
) -> Result<Shape, GgufError> {
    let at = cursor.offset();
    let found = cursor.u32(|| place("number of dimensions", None))?;
    if !(1..=DIMENSIONS_MAX as u32).contains(&found) {
        return Err(
            place("number of dimensions", None).problem(at, Problem::DimensionCount { found })
        );
    }
    let mut sizes = [0; DIMENSIONS_MAX];
    for (dimension, place_of_size) in sizes.iter_mut().enumerate().take(found as usize) {
        let at = cursor.offset();
        let size = cursor.u64(|| place("dimension", Some(dimension)))?;
        let problem = match size {
            0 => Problem::Zero,
            size if size > i64::MAX.cast_unsigned() => Problem::Negative {
                found: size.cast_signed(),
            },
            size => {
                *place_of_size = size;
                continue;
            }
        };
        return Err(place("dimension", Some(dimension)).problem(at, problem));
    }
    Ok(Shape::new(sizes, found as usize))
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
