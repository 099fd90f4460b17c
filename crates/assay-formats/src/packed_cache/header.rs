//! The bytes before the data of a cache.
//!
//! | bytes | what |
//! |---|---|
//! | 16 | magic |
//! | 4, 4, 8 | version of this format, version of the packed layout, numerics contract (padded with zeros) |
//! | 64 | SHA-256 of the model file, hexadecimal |
//! | 32 | BLAKE3 of the parts' names, types and shapes |
//! | 8 | number of parts |
//! | 8 each | bytes of each part |
//! | 32 each | BLAKE3 of each chunk of each part |
//! | 32 | BLAKE3 of everything above |

use std::ops::Range;

use super::{CacheError, CacheKey, Part};

pub(super) const MAGIC: &[u8; 16] = b"assay-packed\n\x1a\0\0";
const FORMAT_VERSION: u32 = 1;

pub(super) const HASH_BYTES: usize = 32;
pub(super) const LAYOUT: Range<usize> = 20..24;
pub(super) const NUMERICS: Range<usize> = 24..32;
pub(super) const MODEL: Range<usize> = 32..96;
pub(super) const NUM_PARTS: Range<usize> = 128..136;
/// Bytes before the parts' lengths.
pub(super) const FIXED_BYTES: usize = 136;

/// Everything before the chunks' hashes: what a reader can say beforehand.
pub(super) fn prefix(key: &CacheKey<'_>, parts: &[Part<'_>]) -> Vec<u8> {
    let mut prefix = Vec::with_capacity(FIXED_BYTES + 8 * parts.len());
    prefix.extend_from_slice(MAGIC);
    prefix.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    prefix.extend_from_slice(&key.layout.to_le_bytes());
    push_padded(&mut prefix, key.numerics, NUMERICS.len());
    push_padded(&mut prefix, key.model_sha256, MODEL.len());
    prefix.extend_from_slice(digest_of(parts).as_bytes());
    prefix.extend_from_slice(&(parts.len() as u64).to_le_bytes());
    for part in parts {
        prefix.extend_from_slice(&(part.bytes as u64).to_le_bytes());
    }
    prefix
}

/// Says what differs between the `expected` prefix and the one `found`, which may be shorter.
pub(super) fn check_prefix(expected: &[u8], found: &[u8]) -> Result<(), CacheError> {
    let same = |range: Range<usize>| expected.get(range.clone()) == found.get(range);
    if !same(0..MAGIC.len()) {
        return Err(CacheError::NotACache);
    }
    if !same(MAGIC.len()..NUMERICS.end) {
        return Err(CacheError::OtherVersion);
    }
    if !same(MODEL) {
        return Err(CacheError::OtherModel);
    }
    if expected != found {
        return Err(CacheError::damaged_header());
    }
    Ok(())
}

fn push_padded(bytes: &mut Vec<u8>, text: &str, len: usize) {
    let end = bytes.len() + len;
    bytes.extend(text.bytes().take(len));
    bytes.resize(end, 0);
}

fn digest_of(parts: &[Part<'_>]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.name.len() as u64).to_le_bytes());
        hasher.update(part.name.as_bytes());
        hasher.update(&part.dtype.ggml_id().to_le_bytes());
        hasher.update(&(part.rows as u64).to_le_bytes());
        hasher.update(&(part.columns as u64).to_le_bytes());
    }
    hasher.finalize()
}
