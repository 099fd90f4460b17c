//! The header of a GGUF file, checked: version, metadata, tensor descriptions, data start.
//!
//! Pure: bytes in, index or error out; no file, no clock. Every number is untrusted. The heap that parsing takes is
//! never more than the file's size, for any bytes: only where each entry and each tensor begins is kept, in fewer
//! bytes than the item itself has. Files without metadata or without tensors are legal (vocabulary-only files have
//! none); what a model needs is decided by whoever loads one.
//!
//! Format: GGUF version 3, <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>.

use super::cursor::Cursor;
use super::error::{GgufError, Place, Problem};
use super::metadata::{self, Metadata};
use super::tensor_info::DataLayout;
use super::tensors::{self, Tensors};
use super::value::Value;

const MAGIC: [u8; 4] = *b"GGUF";
const VERSION: u32 = 3;
const DEFAULT_ALIGNMENT: u32 = 32;
const ALIGNMENT_MAX: u32 = 64 * 1024;
const ALIGNMENT_KEY: &str = "general.alignment";

/// What parsing keeps of a header. Everything else is read from the file's bytes when it is asked for.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) version: u32,
    pub(super) layout: DataLayout,
    /// Where each metadata entry begins, sorted by key.
    entries: Box<[u64]>,
    /// Where each tensor's description begins, sorted by name.
    tensors: Box<[u64]>,
    /// Where the first of them begins.
    first_tensor: u64,
}

impl Header {
    /// Checks the header at the start of `bytes`, which must be the whole file: tensor ranges are checked against
    /// its length. Bytes after the last tensor are ignored.
    ///
    /// # Errors
    /// Any [`GgufError`] but `Open`, with the place; never panics.
    pub(super) fn parse(bytes: &[u8]) -> Result<Header, GgufError> {
        let mut cursor = Cursor::new(bytes);
        let version = read_version(&mut cursor)?;

        let tensor_count = read_count(&mut cursor, "tensor count", tensors::TENSORS_MAX)?;
        let entry_count = read_count(&mut cursor, "metadata count", metadata::ENTRIES_MAX)?;
        let num_entries = entry_count.check(&cursor, metadata::ENTRY_BYTES_MIN)?;
        let entries = metadata::index(&mut cursor, num_entries)?;
        let alignment = alignment(Metadata {
            bytes,
            by_key: &entries,
        })?;

        let num_tensors = tensor_count.check(&cursor, tensors::TENSOR_BYTES_MIN)?;
        let first_tensor = cursor.offset();
        let mut tensors = tensors::index(&mut cursor, num_tensors)?;
        let layout = DataLayout {
            alignment,
            data_offset: cursor.offset().next_multiple_of(alignment.into()),
            file_len: bytes.len() as u64,
        };
        tensors::resolve(bytes, &mut tensors, &layout)?;
        Ok(Header {
            version,
            layout,
            entries,
            tensors,
            first_tensor,
        })
    }

    /// The metadata of the file `bytes`, which this header was parsed from.
    pub(super) fn metadata<'a>(&'a self, bytes: &'a [u8]) -> Metadata<'a> {
        Metadata {
            bytes,
            by_key: &self.entries,
        }
    }

    /// The tensors of the file `bytes`, which this header was parsed from.
    pub(super) fn tensors<'a>(&'a self, bytes: &'a [u8]) -> Tensors<'a> {
        Tensors {
            bytes,
            first: self.first_tensor,
            by_name: &self.tensors,
            layout: &self.layout,
        }
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
    field: &'static str,
    value: u64,
    at: u64,
}

impl Count {
    /// The count, once as many items of at least `min_bytes` fit in what `cursor` has left.
    fn check(&self, cursor: &Cursor<'_>, min_bytes: u64) -> Result<usize, GgufError> {
        let place = || Place::Header { field: self.field };
        cursor.check_count(self.value, min_bytes, self.at, place)
    }
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
    Ok(Count { field, value, at })
}

fn alignment(metadata: Metadata<'_>) -> Result<u32, GgufError> {
    let Some((ordinal, offset, value)) = metadata.locate(ALIGNMENT_KEY) else {
        return Ok(DEFAULT_ALIGNMENT);
    };
    let problem = match value {
        Value::U32(found) if found.is_power_of_two() && found <= ALIGNMENT_MAX => return Ok(found),
        Value::U32(found) => Problem::Alignment {
            found,
            limit: ALIGNMENT_MAX,
        },
        _ => Problem::AlignmentType {
            found: value.type_name(),
        },
    };
    let place = Place::Key {
        ordinal,
        key: Some(ALIGNMENT_KEY.to_owned()),
        field: "value",
        element: None,
    };
    Err(place.problem(offset, problem))
}
