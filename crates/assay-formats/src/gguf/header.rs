//! The whole header of a GGUF file, parsed from bytes: version, metadata, tensor descriptions, data start.
//!
//! Pure: bytes in, header or error out; no file, no clock. Every number is untrusted. Heap use is linear in the
//! header's bytes: arrays and strings take what they take in the file, and each entry or tensor a fixed amount more.
//! Files without metadata or without tensors are legal (vocabulary-only files have none); what a model needs is
//! decided by whoever loads one.
//!
//! Format: GGUF version 3, <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>.

use super::cursor::Cursor;
use super::error::{GgufError, Ordinal, Place, Problem};
use super::metadata::{self, Metadata};
use super::tensor_info::{self, DataLayout, RawTensor, TensorInfo};
use super::value::Value;

const MAGIC: [u8; 4] = *b"GGUF";
const VERSION: u32 = 3;
const DEFAULT_ALIGNMENT: u32 = 32;
const ALIGNMENT_MAX: u32 = 64 * 1024;
const ALIGNMENT_KEY: &str = "general.alignment";

/// Everything in a GGUF file except the tensors' data.
#[derive(Debug, Clone)]
pub struct Header {
    /// Format version; always 3 today.
    pub version: u32,
    /// Alignment of tensor data in bytes: a power of two, at most 64 KiB.
    pub alignment: u32,
    /// The key-value section.
    pub metadata: Metadata,
    /// Tensor descriptions in file order, each inside the file.
    pub tensors: Vec<TensorInfo>,
    /// Where the data section begins, from the start of the file; may lie past the end when there are no tensors.
    pub data_offset: u64,
}

impl Header {
    /// Parses the header at the start of `bytes`, which must be the whole file: tensor ranges are checked against
    /// its length. Bytes after the last tensor are ignored.
    ///
    /// # Errors
    /// Any [`GgufError`] but `Open`, with the place; never panics.
    pub fn parse(bytes: &[u8]) -> Result<Header, GgufError> {
        let mut cursor = Cursor::new(bytes);
        let version = read_version(&mut cursor)?;

        let tensor_count = read_count(&mut cursor, "tensor count", tensor_info::TENSORS_MAX)?;
        let entry_count = read_count(&mut cursor, "metadata count", metadata::ENTRIES_MAX)?;
        let entries = cursor.check_count(
            entry_count.value,
            metadata::ENTRY_BYTES_MIN,
            entry_count.at,
            || Place::Header {
                field: "metadata count",
            },
        )?;
        let metadata = Metadata::read(&mut cursor, entries)?;
        let alignment = alignment(&metadata)?;

        let tensors = cursor.check_count(
            tensor_count.value,
            tensor_info::TENSOR_BYTES_MIN,
            tensor_count.at,
            || Place::Header {
                field: "tensor count",
            },
        )?;
        let mut raw = Vec::with_capacity(tensors);
        for index in 0..tensors {
            raw.push(RawTensor::read(
                &mut cursor,
                Ordinal {
                    index,
                    count: tensors,
                },
            )?);
        }
        let data_offset = cursor.offset().next_multiple_of(alignment.into());
        let layout = DataLayout {
            alignment,
            data_offset,
            file_len: bytes.len() as u64,
        };
        let tensors = tensor_info::resolve(raw, &layout)?;
        Ok(Header {
            version,
            alignment,
            metadata,
            tensors,
            data_offset,
        })
    }
}

fn read_version(cursor: &mut Cursor<'_>) -> Result<u32, GgufError> {
    let available = cursor.left().min(MAGIC.len() as u64);
    let found = cursor.take(available, || Place::Header { field: "magic" })?;
    if found != MAGIC {
        return Err(GgufError::NotGguf {
            found: found.to_vec(),
        });
    }
    match cursor.u32(|| Place::Header { field: "version" })? {
        VERSION => Ok(VERSION),
        found if (1..=VERSION).contains(&found.swap_bytes()) => Err(GgufError::BigEndian {
            version: found.swap_bytes(),
        }),
        found => Err(GgufError::Version { found }),
    }
}

/// A count of the fixed header and where it stands.
struct Count {
    value: u64,
    at: u64,
}

fn read_count(
    cursor: &mut Cursor<'_>,
    field: &'static str,
    limit: u64,
) -> Result<Count, GgufError> {
    let place = || Place::Header { field };
    let at = cursor.offset();
    let value = cursor.u64(place)?;
    if value > limit {
        return Err(place().problem(at, Problem::Limit { value, limit }));
    }
    Ok(Count { value, at })
}

fn alignment(metadata: &Metadata) -> Result<u32, GgufError> {
    let Some((offset, value)) = metadata.locate(ALIGNMENT_KEY) else {
        return Ok(DEFAULT_ALIGNMENT);
    };
    let problem = match *value {
        Value::U32(found) if found.is_power_of_two() && found <= ALIGNMENT_MAX => return Ok(found),
        Value::U32(found) => Problem::Alignment {
            found,
            limit: ALIGNMENT_MAX,
        },
        _ => Problem::AlignmentType {
            found: value.type_name(),
        },
    };
    let index = metadata
        .iter()
        .position(|(key, _)| key == ALIGNMENT_KEY)
        .unwrap_or(0);
    let ordinal = Ordinal {
        index,
        count: metadata.len(),
    };
    let place = Place::Key {
        ordinal,
        key: Some(ALIGNMENT_KEY.to_owned()),
        field: "value",
        element: None,
    };
    Err(place.problem(offset, problem))
}
