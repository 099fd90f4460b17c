//! Writing a cache: whole or not at all, by one process at a time.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions, TryLockError};
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::{CHUNK_BYTES, CacheError, CacheKey, Part, header};

/// Writes the cache `path` of the model file `model`: `data` holds the bytes of each of `parts`.
///
/// The bytes go to another name first and get theirs by a rename, so that a reader sees the old file or the new one.
/// The model file is locked meanwhile; the lock ends with the process, whatever ends it.
///
/// # Panics
/// When `data` is not as long as `parts` says.
///
/// # Errors
/// [`CacheError::Busy`] while another process writes it, [`CacheError::Io`] otherwise; no file is left behind.
pub fn write(
    path: &Path,
    model: &Path,
    key: &CacheKey<'_>,
    parts: &[Part<'_>],
    data: &[&[u8]],
) -> Result<(), CacheError> {
    assert!(
        parts
            .iter()
            .map(|part| part.bytes)
            .eq(data.iter().map(|bytes| bytes.len())),
        "every part has its bytes"
    );
    let lock = File::open(model)?;
    lock.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => CacheError::Busy,
        TryLockError::Error(error) => CacheError::Io(error),
    })?;
    let name = path.file_name().unwrap_or_default();
    let mut prefix = name.to_owned();
    prefix.push(".partial-");
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    remove_left_over(folder, &prefix)?;
    let file = tempfile::Builder::new()
        .prefix(&prefix)
        .permissions(Permissions::from_mode(0o644))
        .tempfile_in(folder)?;
    let mut out = BufWriter::with_capacity(CHUNK_BYTES, file);
    out.write_all(&whole_header(key, parts, data))?;
    for bytes in data {
        out.write_all(bytes)?;
    }
    // Not synced: if the machine dies now, the hashes tell.
    let file = out.into_inner().map_err(|error| error.into_error())?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

fn whole_header(key: &CacheKey<'_>, parts: &[Part<'_>], data: &[&[u8]]) -> Vec<u8> {
    let mut whole = header::prefix(key, parts);
    for chunk in data.iter().flat_map(|bytes| bytes.chunks(CHUNK_BYTES)) {
        whole.extend_from_slice(blake3::hash(chunk).as_bytes());
    }
    let hash = blake3::hash(&whole);
    whole.extend_from_slice(hash.as_bytes());
    whole
}

/// Removes what a writer that was killed left; the lock says that none is alive.
fn remove_left_over(folder: &Path, prefix: &OsStr) -> Result<(), CacheError> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if name
            .as_encoded_bytes()
            .starts_with(prefix.as_encoded_bytes())
        {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
