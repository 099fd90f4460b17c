//! SHA-256 of model files, remembered by path, size, inode and times, so that a start reads a file once.
//!
//! The time of the last change to the inode is among them: whoever sets the modification time back moves it.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

const FILE_NAME: &str = "digests.json";
const READ_BYTES: usize = 1 << 20;
/// Old entries beyond this many are dropped.
const MAX_REMEMBERED: usize = 256;

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Remembered {
    path: PathBuf,
    bytes: u64,
    inode: u64,
    mtime: i64,
    mtime_nanos: i64,
    ctime: i64,
    ctime_nanos: i64,
    sha256: String,
}

/// The SHA-256 of `path` in lowercase hex, from memory where the file has not changed.
///
/// # Errors
/// If the file cannot be read. An unreadable memory is not an error: the file is hashed again.
pub(crate) fn sha256_of_file(path: &Path, cache_dir: &Path) -> Result<String> {
    let probe = probe(path).with_context(|| format!("cannot read {}", path.display()))?;
    let known = load(cache_dir).into_iter().find(|entry| {
        Remembered {
            sha256: String::new(),
            ..entry.clone()
        } == probe
    });
    if let Some(entry) = known {
        return Ok(entry.sha256);
    }
    sha256_anew(path, cache_dir)
}

/// The SHA-256 of `path` as it is read now, whatever is remembered of it.
///
/// # Errors
/// If the file cannot be read.
pub(crate) fn sha256_anew(path: &Path, cache_dir: &Path) -> Result<String> {
    let started = Instant::now();
    let sha256 = hash(path).with_context(|| format!("cannot read {}", path.display()))?;
    let seconds = started.elapsed().as_secs_f64();
    tracing::info!(path = %path.display(), seconds, "model file hashed");
    remember(path, cache_dir, &sha256);
    Ok(sha256)
}

/// Notes that `path`, as it is now, has this hash. Failing to note it costs time later, never correctness.
pub(crate) fn remember(path: &Path, cache_dir: &Path, sha256: &str) {
    let Ok(probe) = probe(path) else { return };
    let mut entries = load(cache_dir);
    entries.retain(|entry| entry.path != probe.path);
    entries.push(Remembered {
        sha256: sha256.to_owned(),
        ..probe
    });
    let excess = entries.len().saturating_sub(MAX_REMEMBERED);
    entries.drain(..excess);
    if let Err(error) = store(cache_dir, &entries) {
        tracing::debug!(%error, "cannot remember a model's hash");
    }
}

/// Lowercase hex of `bytes`.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn probe(path: &Path) -> std::io::Result<Remembered> {
    let meta = fs::metadata(path)?;
    Ok(Remembered {
        path: fs::canonicalize(path)?,
        bytes: meta.len(),
        inode: meta.ino(),
        mtime: meta.mtime(),
        mtime_nanos: meta.mtime_nsec(),
        ctime: meta.ctime(),
        ctime_nanos: meta.ctime_nsec(),
        sha256: String::new(),
    })
}

fn hash(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0u8; READ_BYTES];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok(hex(&hasher.finalize()));
        }
        hasher.update(&buffer[..read]);
    }
}

fn load(cache_dir: &Path) -> Vec<Remembered> {
    fs::read(cache_dir.join(FILE_NAME))
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default()
}

fn store(cache_dir: &Path, entries: &[Remembered]) -> Result<()> {
    fs::create_dir_all(cache_dir)?;
    // Two starts at once may race; each rename leaves a whole file.
    let mut file = tempfile::NamedTempFile::new_in(cache_dir)?;
    serde_json::to_writer(&mut file, entries)?;
    file.persist(cache_dir.join(FILE_NAME))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_answers_until_the_file_changes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.gguf");
        fs::write(&path, b"abc").unwrap();
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256_of_file(&path, dir.path()).unwrap(), abc);
        remember(&path, dir.path(), "from memory");
        assert_eq!(sha256_of_file(&path, dir.path()).unwrap(), "from memory");
        fs::write(&path, b"abcd").unwrap();
        assert_eq!(
            sha256_of_file(&path, dir.path()).unwrap(),
            hash(&path).unwrap()
        );
        fs::write(dir.path().join(FILE_NAME), b"not json").unwrap();
        assert_eq!(
            sha256_of_file(&path, dir.path()).unwrap(),
            hash(&path).unwrap()
        );
    }
}
