//! Matrices from the packed cache beside a model, or into it: the meeting of a file's parts with the kernels' layout.
//!
//! A cache only ever saves time. Whatever is wrong with it is reported and the matrices are packed from the model
//! file, which stays the one source of every number.

use std::path::Path;

use assay_formats::TensorInfo;
use assay_formats::packed_cache::{
    self, CHUNK_BYTES, CacheError, CacheKey, PackedCache as CacheFile, Part,
};
use assay_kernels::Compute;
use assay_kernels::matmul::{LAYOUT_VERSION, PackError, PackedMatrix, WeightArena};
use assay_kernels::numerics::CONTRACT_VERSION;

/// Where the packed matrices of one model file are kept.
#[derive(Clone, Copy)]
pub struct PackedCache<'a> {
    /// The cache file; it need not exist.
    pub path: &'a Path,
    /// The model file, which is locked while the cache is written.
    pub model: &'a Path,
    /// SHA-256 of the model file, lowercase hexadecimal.
    pub model_sha256: &'a str,
    /// Called with what became of the cache.
    pub report: &'a dyn Fn(CacheEvent),
}

/// What became of a cache.
#[derive(Debug)]
pub enum CacheEvent {
    /// The matrices were read from it.
    Read,
    /// It was there and could not be used; the matrices are packed from the model file.
    Ignored(CacheError),
    /// It was written.
    Written,
    /// It could not be written; the model runs all the same.
    NotWritten(CacheError),
}

impl<'a> PackedCache<'a> {
    fn key(&self) -> CacheKey<'a> {
        CacheKey {
            model_sha256: self.model_sha256,
            numerics: CONTRACT_VERSION,
            layout: LAYOUT_VERSION,
        }
    }

    /// Every matrix of `tensors` that is kept in panels, in order; the others are `None`. `None` altogether when the
    /// cache is absent or was refused.
    pub(crate) fn read(
        &self,
        cx: &Compute,
        tensors: &[Shaped<'_>],
        mut done: impl FnMut(&Shaped<'_>),
    ) -> Option<Vec<Option<PackedMatrix>>> {
        let parts = parts(tensors);
        let cache = match CacheFile::open(self.path, &self.key(), &parts) {
            Ok(cache) => cache?,
            Err(error) => {
                (self.report)(CacheEvent::Ignored(error));
                return None;
            }
        };
        let mut arena = WeightArena::new();
        let mut part = 0;
        let mut matrices = Vec::with_capacity(tensors.len());
        for shaped in tensors {
            if shaped.panels_len().is_none() {
                matrices.push(None);
                continue;
            }
            match read_part(&cache, part, &mut arena, cx, shaped) {
                Ok(matrix) => matrices.push(Some(matrix)),
                Err(error) => {
                    (self.report)(CacheEvent::Ignored(error));
                    return None;
                }
            }
            part += 1;
            done(shaped);
        }
        (self.report)(CacheEvent::Read);
        Some(matrices)
    }

    /// Writes the matrices of `tensors`.
    pub(crate) fn write(&self, tensors: &[Shaped<'_>], matrices: &[&PackedMatrix]) {
        let data: Vec<&[u8]> = matrices
            .iter()
            .filter_map(|matrix| matrix.panels())
            .collect();
        let parts = parts(tensors);
        if parts.is_empty() {
            return;
        }
        let written = packed_cache::write(self.path, self.model, &self.key(), &parts, &data);
        (self.report)(match written {
            Ok(()) => CacheEvent::Written,
            Err(error) => CacheEvent::NotWritten(error),
        });
    }
}

/// A tensor as the matrix `[n, k]` that it is to be.
#[derive(Clone, Copy)]
pub(crate) struct Shaped<'a> {
    pub(crate) tensor: TensorInfo<'a>,
    pub(crate) n: usize,
    pub(crate) k: usize,
}

impl Shaped<'_> {
    /// Bytes of its panels, where it is kept in panels.
    fn panels_len(&self) -> Option<usize> {
        PackedMatrix::panels_len(self.tensor.dtype, self.n, self.k)
    }
}

fn parts<'a>(tensors: &[Shaped<'a>]) -> Vec<Part<'a>> {
    let part = |shaped: &Shaped<'a>| {
        Some(Part {
            name: shaped.tensor.name,
            dtype: shaped.tensor.dtype,
            rows: shaped.n,
            columns: shaped.k,
            bytes: shaped.panels_len()?,
        })
    };
    tensors.iter().filter_map(part).collect()
}

fn read_part(
    cache: &CacheFile,
    part: usize,
    arena: &mut WeightArena,
    cx: &Compute,
    shaped: &Shaped<'_>,
) -> Result<PackedMatrix, CacheError> {
    let refused = std::sync::Mutex::new(None);
    let read = |chunk: usize, out: &mut [u8]| match cache.read_chunk(part, chunk, out) {
        Ok(()) => true,
        Err(error) => {
            if let Ok(mut refused) = refused.lock() {
                refused.get_or_insert(error);
            }
            false
        }
    };
    let dtype = shaped.tensor.dtype;
    let matrix = PackedMatrix::read_in(arena, cx, dtype, shaped.n, shaped.k, CHUNK_BYTES, &read);
    match matrix {
        Ok(Some(matrix)) => Ok(matrix),
        Ok(None) => {
            Err(refused
                .into_inner()
                .ok()
                .flatten()
                .unwrap_or_else(|| CacheError::Damaged {
                    what: format!("`{}`", shaped.tensor.name),
                }))
        }
        Err(PackError::OutOfMemory { source, .. }) => Err(source.into()),
        Err(error) => Err(std::io::Error::other(error).into()),
    }
}
