//! The packed form of a model's matrices, kept in a file beside the model so that the next start need not repack.
//!
//! A cache is an offer, never a need: whatever is wrong with it (another model or version, a cut, one flipped bit)
//! is a [`CacheError`], on which the caller packs again. Nothing in the file decides a size: the loader says which
//! parts it expects, and a file of any other length is refused before a byte of data is read. Every chunk is hashed
//! where it was read to, so that no later change of the file can reach a result. The hashes guard against damage;
//! someone who can write the folder could as well replace the model.
//!
//! Layout, little-endian: `header`, then the parts' bytes one after another.

mod header;
mod reader;
mod writer;

use std::io;

use crate::DType;

pub use reader::{CacheSummary, PackedCache};
pub use writer::write;

/// Bytes hashed and read at once; each part begins a chunk of its own.
pub const CHUNK_BYTES: usize = 1 << 20;

/// What a cache must have been made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheKey<'a> {
    /// SHA-256 of the model file, 64 lowercase hexadecimal digits.
    pub model_sha256: &'a str,
    /// Version of the numerics contract, at most eight bytes.
    pub numerics: &'a str,
    /// Version of the packed layout.
    pub layout: u32,
}

/// One matrix of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part<'a> {
    /// Name of its tensor.
    pub name: &'a str,
    /// Element type in the model file.
    pub dtype: DType,
    /// Rows of the matrix.
    pub rows: usize,
    /// Elements of a row.
    pub columns: usize,
    /// Bytes of its packed form.
    pub bytes: usize,
}

impl Part<'_> {
    fn num_chunks(&self) -> usize {
        self.bytes.div_ceil(CHUNK_BYTES)
    }
}

/// Why a cache cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// The system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A folder, a device or a symbolic link.
    #[error("it is no regular file")]
    NotRegular,
    /// The first bytes are not those of a cache.
    #[error("it is no packed-weight cache")]
    NotACache,
    /// Another version of this program wrote it.
    #[error("another version of assay wrote it")]
    OtherVersion,
    /// It belongs to another model file.
    #[error("it was made from another model file")]
    OtherModel,
    /// The file is not as long as its parts.
    #[error("it has {found} bytes, not {expected}")]
    Length {
        /// Length that the parts need.
        expected: u64,
        /// Length of the file.
        found: u64,
    },
    /// Bytes are not what was written.
    #[error("{what} is damaged")]
    Damaged {
        /// The header, or the name of a tensor.
        what: String,
    },
    /// Another process is writing the same cache.
    #[error("another process is writing it")]
    Busy,
}

impl CacheError {
    fn damaged_header() -> CacheError {
        CacheError::Damaged {
            what: "the header".to_owned(),
        }
    }
}
