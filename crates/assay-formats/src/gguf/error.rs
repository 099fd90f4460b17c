//! What can be wrong with a GGUF file, with the place: header field, key or tensor, and byte offset.
//!
//! Names come from the file, so they are printed quoted, escaped and cut to a sane length.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::dtype::{DType, never_stored};

/// Why a GGUF file, or one value of it, was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GgufError {
    /// The file could not be opened or mapped.
    #[error("cannot open {}", path.display())]
    Open {
        /// The path as given.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// The first four bytes are not `GGUF`.
    #[error("not a GGUF file: it begins with {found:02x?}, not with the bytes of \"GGUF\"")]
    NotGguf {
        /// Up to four bytes from the start of the file.
        found: Vec<u8>,
    },
    /// The version field reads as a known version when its bytes are swapped.
    #[error(
        "version at byte 4: the file is big-endian (version {version} with its bytes swapped); only little-endian files are supported"
    )]
    BigEndian {
        /// The version once swapped.
        version: u32,
    },
    /// A version whose layout this reader does not know.
    #[error("version at byte 4: GGUF version {found} is not supported, only version 3")]
    Version {
        /// The version as read.
        found: u32,
    },
    /// One field of the file is wrong.
    #[error("{place} at byte {offset}: {problem}")]
    Field {
        /// Which field; boxed to keep results small.
        place: Box<Place>,
        /// Offset of the offending bytes from the start of the file.
        offset: u64,
        /// What is wrong with it.
        problem: Problem,
    },
    /// A key exists but holds another type than the reader needs.
    #[error(
        "metadata key {} at byte {offset}: expected {expected}, found {found}",
        Name(key)
    )]
    WrongType {
        /// The key.
        key: String,
        /// Offset of the value from the start of the file.
        offset: u64,
        /// The type needed.
        expected: &'static str,
        /// The type in the file.
        found: String,
    },
    /// A number has the right kind but does not fit, or is not finite.
    #[error(
        "metadata key {} at byte {offset}: {value} is not {expected}",
        Name(key)
    )]
    OutOfRange {
        /// The key.
        key: String,
        /// Offset of the value from the start of the file.
        offset: u64,
        /// The value as text.
        value: String,
        /// What would have been accepted.
        expected: &'static str,
    },
}

/// The field of a GGUF file that an error is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A field of the fixed header.
    Header {
        /// Its name, such as `tensor count`.
        field: &'static str,
    },
    /// A field of a metadata entry.
    Key {
        /// Which entry.
        ordinal: Ordinal,
        /// The key, once it could be read.
        key: Option<String>,
        /// Which field of the entry.
        field: &'static str,
        /// The array element concerned, if one is.
        element: Option<usize>,
    },
    /// A field of a tensor's description.
    Tensor {
        /// Which tensor.
        ordinal: Ordinal,
        /// The name, once it could be read.
        name: Option<String>,
        /// Which field of the description.
        field: &'static str,
        /// The dimension concerned, if one is.
        dimension: Option<usize>,
    },
}

impl Place {
    /// The error that `problem` at `offset` is for this place.
    pub(super) fn problem(self, offset: u64, problem: Problem) -> GgufError {
        GgufError::Field {
            place: Box::new(self),
            offset,
            problem,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Header { field } => write!(f, "{field}"),
            Place::Key {
                ordinal,
                key: None,
                field,
                ..
            } => write!(f, "metadata key {ordinal}, {field}"),
            Place::Key {
                ordinal,
                key: Some(key),
                field,
                element,
            } => {
                write!(f, "metadata key {} ({ordinal}), {field}", Name(key))?;
                element.map_or(Ok(()), |element| write!(f, " of element {element}"))
            }
            Place::Tensor {
                ordinal,
                name: None,
                field,
                ..
            } => write!(f, "tensor {ordinal}, {field}"),
            Place::Tensor {
                ordinal,
                name: Some(name),
                field,
                dimension,
            } => {
                write!(f, "tensor {} ({ordinal}), {field}", Name(name))?;
                dimension.map_or(Ok(()), |dimension| write!(f, " {dimension}"))
            }
        }
    }
}

/// Position in a list whose length the header gives; printed as `3 of 5`, so that a wrong count shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ordinal {
    /// Position, from 0.
    pub index: usize,
    /// Length of the list according to the header.
    pub count: usize,
}

impl fmt::Display for Ordinal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.index.saturating_add(1), self.count)
    }
}

/// What is wrong with a field.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The file ends first.
    #[error("needs {needed} bytes, but the file has {left} left")]
    PastEnd {
        /// Bytes the field takes.
        needed: u64,
        /// Bytes from the field's start to the end of the file.
        left: u64,
    },
    /// A count that the rest of the file cannot hold.
    #[error(
        "count {count} of at least {min_element_bytes} bytes each does not fit in the {left} bytes left"
    )]
    Count {
        /// The count as read.
        count: u64,
        /// The least that one element takes in the file.
        min_element_bytes: u64,
        /// Bytes left after the count.
        left: u64,
    },
    /// A count or length above the limit of the format or of this reader.
    #[error("{value} is above the limit of {limit}")]
    Limit {
        /// The value as read.
        value: u64,
        /// The greatest accepted.
        limit: u64,
    },
    /// Text is not UTF-8.
    #[error("not UTF-8 after {valid_bytes} bytes")]
    NotUtf8 {
        /// Bytes that were valid before the first bad one.
        valid_bytes: usize,
    },
    /// A key or name has no characters.
    #[error("is empty")]
    Empty,
    /// A key or name occurs twice.
    #[error("occurs twice (first at byte {first})")]
    Duplicate {
        /// Offset of the first occurrence.
        first: u64,
    },
    /// A value type number outside the format.
    #[error("value type {found} does not exist")]
    ValueType {
        /// The number as read.
        found: u32,
    },
    /// An array whose elements are arrays.
    #[error("arrays of arrays are not supported")]
    NestedArray,
    /// A boolean that is neither 0 nor 1.
    #[error("boolean byte {found} is neither 0 nor 1")]
    Bool {
        /// The byte as read.
        found: u8,
    },
    /// `general.alignment` is not a u32.
    #[error("must have type u32, found {found}")]
    AlignmentType {
        /// The type in the file.
        found: String,
    },
    /// `general.alignment` is not an accepted power of two.
    #[error("alignment {found} is not a power of two from 1 to {limit}")]
    Alignment {
        /// The value as read.
        found: u32,
        /// The greatest accepted.
        limit: u32,
    },
    /// A tensor has no dimensions, or more than four.
    #[error("{found} dimensions, expected 1 to 4")]
    DimensionCount {
        /// The number as read.
        found: u32,
    },
    /// A dimension is 0.
    #[error("is zero")]
    Zero,
    /// A dimension has its top bit set: negative as a signed number.
    #[error("{found} is negative or beyond 2^63 - 1")]
    Negative {
        /// The number, read as signed.
        found: i64,
    },
    /// The dimensions, or the byte size they imply, do not fit in 64 bits.
    #[error("size of shape {shape:?} overflows 64 bits")]
    Overflow {
        /// Dimensions, innermost first.
        shape: Vec<u64>,
    },
    /// A tensor type number that no file may hold, or that this version does not know.
    #[error("{}", TypeNumber(*found))]
    TensorType {
        /// The number as read.
        found: u32,
    },
    /// A row is not a whole number of blocks.
    #[error("row of {row} elements is not a whole number of {dtype} blocks of {}", dtype.block_len())]
    PartialBlock {
        /// Elements in a row.
        row: u64,
        /// The tensor's type.
        dtype: DType,
    },
    /// A data offset is not a multiple of the alignment.
    #[error("{found} is not a multiple of the alignment {alignment}")]
    Misaligned {
        /// The offset as read.
        found: u64,
        /// The file's alignment.
        alignment: u32,
    },
    /// A tensor's data does not lie inside the file.
    #[error(
        "data at {offset} of {len} bytes after the data start {data_offset} does not fit in a file of {file_len} bytes"
    )]
    DataPastEnd {
        /// The offset as read, relative to the data section.
        offset: u64,
        /// Byte length of the data.
        len: u64,
        /// Start of the data section.
        data_offset: u64,
        /// Length of the file.
        file_len: u64,
    },
    /// Two tensors share bytes.
    #[error("data overlaps that of tensor {}", Name(other))]
    Overlap {
        /// The tensor that begins earlier.
        other: String,
    },
}

/// A refused type number, by its name where it had one.
struct TypeNumber(u32);

impl fmt::Display for TypeNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = env!("CARGO_PKG_VERSION");
        match never_stored(self.0) {
            Some(name) => write!(
                f,
                "type {} is {name}, which assay {version} does not read: ggml no longer or never stored it in files; \
                 convert the model again",
                self.0
            ),
            None => write!(f, "type {} is not known to assay {version}", self.0),
        }
    }
}

/// Text from a file as shown in an error: quoted, escaped, at most 96 characters.
pub(super) struct Name<'a>(pub(super) &'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN_CHARS: usize = 96;
        match self.0.char_indices().nth(SHOWN_CHARS) {
            None => write!(f, "{:?}", self.0),
            Some((cut, _)) => write!(f, "{:?}…", self.0.get(..cut).unwrap_or_default()),
        }
    }
}
