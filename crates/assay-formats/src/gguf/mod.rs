//! GGUF, the model file format: a header of typed metadata and tensor descriptions, then the tensors' bytes.
//!
//! [`Header::parse`] does all reading and checking on plain bytes; [`GgufFile`] adds the memory map. Nothing here
//! knows what a key or a tensor means to a model.

mod cursor;
mod error;
mod header;
mod metadata;
mod tensor_info;
mod value;

use std::path::Path;

pub use error::{GgufError, Ordinal, Place, Problem};
pub use header::Header;
pub use metadata::Metadata;
pub use tensor_info::TensorInfo;
pub use value::{Array, StringArray, Value};

use crate::mmap::MappedFile;

/// A GGUF file mapped into memory, its header parsed and checked.
#[derive(Debug)]
pub struct GgufFile {
    file: MappedFile,
    header: Header,
    /// Positions in `header.tensors`, sorted by name.
    by_name: Vec<usize>,
}

impl GgufFile {
    /// Maps the file at `path` and parses its header. The file must not be truncated or rewritten while open.
    ///
    /// # Errors
    /// [`GgufError::Open`] when it cannot be mapped, otherwise what [`Header::parse`] found.
    pub fn open(path: &Path) -> Result<GgufFile, GgufError> {
        let file = MappedFile::open(path).map_err(|source| GgufError::Open {
            path: path.to_owned(),
            source,
        })?;
        let header = Header::parse(&file)?;
        let mut by_name: Vec<usize> = (0..header.tensors.len()).collect();
        by_name.sort_by(|&a, &b| name_at(&header, a).cmp(name_at(&header, b)));
        Ok(GgufFile {
            file,
            header,
            by_name,
        })
    }

    /// The parsed header.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The key-value section.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.header.metadata
    }

    /// Tensor descriptions in file order.
    #[must_use]
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.header.tensors
    }

    /// The tensor called `name`.
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        let found = self
            .by_name
            .binary_search_by(|&index| name_at(&self.header, index).cmp(name))
            .ok()?;
        self.header.tensors.get(*self.by_name.get(found)?)
    }

    /// The data of `tensor`, which must come from this file.
    ///
    /// # Panics
    /// When `tensor` describes bytes outside this file, that is, comes from another one.
    #[must_use]
    pub fn tensor_bytes(&self, tensor: &TensorInfo) -> &[u8] {
        let range = usize::try_from(tensor.byte_offset)
            .ok()
            .zip(usize::try_from(tensor.byte_len).ok())
            .and_then(|(begin, len)| Some(begin..begin.checked_add(len)?));
        range
            .and_then(|range| self.file.get(range))
            .expect("the header was checked against this file's length, so its tensors lie inside")
    }

    /// The whole file.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.file
    }
}

fn name_at(header: &Header, index: usize) -> &str {
    header
        .tensors
        .get(index)
        .map_or("", |tensor| tensor.name.as_str())
}
