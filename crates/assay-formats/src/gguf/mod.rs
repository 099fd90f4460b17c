//! GGUF, the model file format: a header of typed metadata and tensor descriptions, then the tensors' bytes.
//!
//! [`Gguf::parse`] checks every number of a header once and keeps an index of it; [`Metadata`] and [`Tensors`] are
//! views that decode names and values from the file's bytes as they are asked for. Nothing here knows what a key or
//! a tensor means to a model.

mod array;
mod cursor;
mod error;
mod header;
mod index;
mod metadata;
mod shape;
mod tensor_info;
mod tensors;
mod value;

use std::ops::Deref;
use std::path::Path;

pub use array::{Array, ElementType, Strings};
pub use error::{GgufError, Ordinal, Place, Problem};
pub use metadata::Metadata;
pub use shape::Shape;
pub use tensor_info::TensorInfo;
pub use tensors::Tensors;
pub use value::Value;

use crate::mmap::MappedFile;
use header::Header;

/// A GGUF file in memory, its header checked; `B` holds the bytes.
#[derive(Debug)]
pub struct Gguf<B> {
    bytes: B,
    header: Header,
}

/// A GGUF file mapped into memory.
pub type GgufFile = Gguf<MappedFile>;

impl GgufFile {
    /// Maps the file at `path` and checks its header. The file must not be truncated or rewritten while open.
    ///
    /// # Errors
    /// [`GgufError::Open`] when it cannot be mapped, otherwise what [`Gguf::parse`] found.
    pub fn open(path: &Path) -> Result<GgufFile, GgufError> {
        let file = MappedFile::open(path).map_err(|source| GgufError::Open {
            path: path.to_owned(),
            source,
        })?;
        Gguf::parse(file)
    }
}

impl<B: Deref<Target = [u8]>> Gguf<B> {
    /// Checks the header at the start of `bytes`, which must be the whole file: tensor ranges are checked against
    /// its length. Bytes after the last tensor are ignored. Takes less memory than `bytes` does.
    ///
    /// # Errors
    /// Any [`GgufError`] but `Open`, with the place; never panics.
    pub fn parse(bytes: B) -> Result<Gguf<B>, GgufError> {
        let header = Header::parse(&bytes)?;
        Ok(Gguf { bytes, header })
    }

    /// Format version; always 3 today.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.header.version
    }

    /// Alignment of tensor data in bytes: a power of two, at most 64 KiB.
    #[must_use]
    pub fn alignment(&self) -> u32 {
        self.header.layout.alignment
    }

    /// Where the data section begins, from the start of the file; may lie past the end when there are no tensors.
    #[must_use]
    pub fn data_offset(&self) -> u64 {
        self.header.layout.data_offset
    }

    /// The key-value section.
    #[must_use]
    pub fn metadata(&self) -> Metadata<'_> {
        self.header.metadata(&self.bytes)
    }

    /// The tensors, each inside the file.
    #[must_use]
    pub fn tensors(&self) -> Tensors<'_> {
        self.header.tensors(&self.bytes)
    }

    /// The tensor called `name`.
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<TensorInfo<'_>> {
        self.tensors().get(name)
    }

    /// The data of `tensor`, which must come from this file.
    ///
    /// # Panics
    /// When `tensor` describes bytes outside this file, that is, comes from another one.
    #[must_use]
    pub fn tensor_bytes(&self, tensor: &TensorInfo<'_>) -> &[u8] {
        let range = usize::try_from(tensor.byte_offset)
            .ok()
            .zip(usize::try_from(tensor.byte_len).ok())
            .and_then(|(begin, len)| Some(begin..begin.checked_add(len)?));
        range
            .and_then(|range| self.bytes.get(range))
            .expect("the header was checked against this file's length, so its tensors lie inside")
    }

    /// The whole file.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
