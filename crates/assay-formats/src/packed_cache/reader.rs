//! Reading a cache: the header first, then chunks, each checked where it was read to.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use super::header::{self, FIXED_BYTES, HASH_BYTES, LAYOUT, MAGIC, MODEL, NUM_PARTS, NUMERICS};
use super::{CHUNK_BYTES, CacheError, CacheKey, Part};

/// A cache whose header is what the model needs; its data is unchecked until it is read.
#[derive(Debug)]
pub struct PackedCache {
    file: File,
    parts: Vec<Extent>,
    hashes: Vec<[u8; HASH_BYTES]>,
}

/// Where a part lies.
#[derive(Debug)]
struct Extent {
    name: String,
    offset: u64,
    first_chunk: usize,
}

impl PackedCache {
    /// Opens the cache at `path`; `Ok(None)` when there is none.
    ///
    /// # Errors
    /// [`CacheError`] when it is not a whole cache of these parts for this key.
    pub fn open(
        path: &Path,
        key: &CacheKey<'_>,
        parts: &[Part<'_>],
    ) -> Result<Option<PackedCache>, CacheError> {
        let Some(mut file) = open_regular(path)? else {
            return Ok(None);
        };
        let expected = header::prefix(key, parts);
        let mut header = Vec::with_capacity(expected.len());
        read_up_to(&mut file, expected.len(), &mut header)?;
        header::check_prefix(&expected, &header)?;

        let num_chunks: usize = parts.iter().map(Part::num_chunks).sum();
        let header_bytes = expected.len() + HASH_BYTES * (num_chunks + 1);
        let data_bytes: u64 = parts.iter().map(|part| part.bytes as u64).sum();
        let (expected, found) = (header_bytes as u64 + data_bytes, file.metadata()?.len());
        if expected != found {
            return Err(CacheError::Length { expected, found });
        }
        let prefix_bytes = header.len();
        read_up_to(&mut file, header_bytes - prefix_bytes, &mut header)?;
        let hashes = checked_hashes(&header, prefix_bytes)?;

        let (mut offset, mut first_chunk) = (header_bytes as u64, 0);
        let parts = parts.iter().map(|part| {
            let extent = Extent {
                name: part.name.to_owned(),
                offset,
                first_chunk,
            };
            offset += part.bytes as u64;
            first_chunk += part.num_chunks();
            extent
        });
        Ok(Some(PackedCache {
            parts: parts.collect(),
            file,
            hashes,
        }))
    }

    /// Fills `out` with chunk `chunk` of part `part`: [`CHUNK_BYTES`], fewer at the part's end. May be called from
    /// several threads at once.
    ///
    /// # Errors
    /// [`CacheError::Damaged`] when the bytes are not those that were written, [`CacheError::Io`]. `out` is then
    /// undefined.
    pub fn read_chunk(&self, part: usize, chunk: usize, out: &mut [u8]) -> Result<(), CacheError> {
        let extent = self
            .parts
            .get(part)
            .ok_or_else(CacheError::damaged_header)?;
        let damaged = || CacheError::Damaged {
            what: format!("`{}`", extent.name),
        };
        let offset = extent.offset + (chunk * CHUNK_BYTES) as u64;
        self.file.read_exact_at(out, offset)?;
        let hash = self.hashes.get(extent.first_chunk + chunk);
        match hash {
            Some(hash) if blake3::hash(out) == *hash => Ok(()),
            _ => Err(damaged()),
        }
    }
}

/// What a cache says of itself, for people to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheSummary {
    /// SHA-256 of the model file it was made from, hexadecimal.
    pub model_sha256: String,
    /// The numerics contract.
    pub numerics: String,
    /// Version of the packed layout.
    pub layout: u32,
    /// Number of matrices.
    pub num_parts: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
}

impl CacheSummary {
    /// Reads the head of the file at `path`; `Ok(None)` when that is not a cache. Checks no hash.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read(path: &Path) -> io::Result<Option<CacheSummary>> {
        // Asked before opening, because opening a pipe waits for a writer.
        if !fs::metadata(path)?.is_file() {
            return Ok(None);
        }
        let mut file = File::open(path)?;
        let mut head = Vec::with_capacity(FIXED_BYTES);
        read_up_to(&mut file, FIXED_BYTES, &mut head)?;
        let Some(head) = head.first_chunk::<FIXED_BYTES>() else {
            return Ok(None);
        };
        if !head.starts_with(MAGIC) {
            return Ok(None);
        }
        let field = |range: std::ops::Range<usize>| head.get(range).unwrap_or_default();
        let text = |range| {
            let text = String::from_utf8_lossy(field(range));
            text.trim_end_matches('\0').to_owned()
        };
        let number = |range| {
            let bytes = field(range).iter().rev();
            bytes.fold(0, |number: u64, &byte| number << 8 | u64::from(byte))
        };
        Ok(Some(CacheSummary {
            model_sha256: text(MODEL),
            numerics: text(NUMERICS),
            layout: u32::try_from(number(LAYOUT)).unwrap_or_default(),
            num_parts: number(NUM_PARTS),
            file_bytes: file.metadata()?.len(),
        }))
    }
}

/// Opens `path` if it is a plain file itself: no link is followed, and no pipe is waited for.
fn open_regular(path: &Path) -> Result<Option<File>, CacheError> {
    let seen = match fs::symlink_metadata(path) {
        Ok(seen) => seen,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if !seen.is_file() {
        return Err(CacheError::NotRegular);
    }
    let file = File::open(path)?;
    let opened = file.metadata()?;
    // A link put there in between would lead elsewhere.
    if (opened.dev(), opened.ino()) != (seen.dev(), seen.ino()) {
        return Err(CacheError::NotRegular);
    }
    Ok(Some(file))
}

/// Appends the next `len` bytes of `file`, or what there is of them.
fn read_up_to(file: &mut File, len: usize, into: &mut Vec<u8>) -> io::Result<()> {
    into.reserve_exact(len);
    file.take(len as u64).read_to_end(into)?;
    Ok(())
}

/// The chunks' hashes in `header`, whose own hash stands at its end.
fn checked_hashes(header: &[u8], prefix_bytes: usize) -> Result<Vec<[u8; HASH_BYTES]>, CacheError> {
    let (content, hash) = header
        .split_last_chunk::<HASH_BYTES>()
        .ok_or_else(CacheError::damaged_header)?;
    if blake3::hash(content) != *hash {
        return Err(CacheError::damaged_header());
    }
    let hashes = content.get(prefix_bytes..).unwrap_or_default();
    Ok(hashes.as_chunks().0.to_vec())
}
