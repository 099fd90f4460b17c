//! A model file that is not whole yet: its parts joined so far, in a folder of the cache that the next attempt finds.
//!
//! `assembled` holds the bytes, `parts` says how many parts of how many bytes are whole in it; what stands behind them
//! belongs to the part under way. Nothing of it is trusted: the whole file's hash is checked at the end.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::catalog::CatalogModel;
use crate::digest::hex;

const COPY_BYTES: usize = 1 << 20;
const ASSEMBLED: &str = "assembled";
const PARTS: &str = "parts";

/// Which parts are whole.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
struct Parts {
    num_parts: usize,
    bytes: u64,
}

/// A file under construction that hashes what it is given and refuses to outgrow its expected size.
pub(super) struct Staging {
    folder: PathBuf,
    /// Unbuffered: what came is there, however the process ends.
    file: File,
    hasher: Sha256,
    /// Bytes in the file, those of the part under way included.
    bytes: u64,
    expected_bytes: u64,
    parts: Parts,
}

impl Staging {
    /// What is there of `model`, or nothing yet.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub(super) fn open(model: &CatalogModel, cache_dir: &Path) -> Result<Self> {
        // Another hash is another file, whatever it is called.
        let name = model.sha256.get(..16).unwrap_or(&model.sha256);
        let folder = cache_dir.join(format!(".pull-{name}"));
        let shown = folder.display();
        let cannot = || format!("cannot write to {shown}");
        fs::create_dir_all(&folder).with_context(cannot)?;
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let file = options.open(folder.join(ASSEMBLED)).with_context(cannot)?;
        let parts = read_parts(&folder);
        let found = file.metadata().with_context(cannot)?.len();
        let (parts, bytes) = if found <= model.bytes && parts.bytes <= found {
            (parts, found)
        } else {
            (Parts::default(), 0)
        };
        let mut staging = Self {
            folder: folder.clone(),
            file,
            hasher: Sha256::new(),
            bytes: 0,
            expected_bytes: model.bytes,
            parts,
        };
        staging.take_over(bytes).with_context(cannot)?;
        Ok(staging)
    }

    /// Keeps the first `bytes` of the file, and hashes them.
    fn take_over(&mut self, bytes: u64) -> Result<()> {
        self.hasher = Sha256::new();
        self.bytes = bytes;
        let file = &mut self.file;
        file.set_len(bytes)?;
        file.seek(SeekFrom::Start(0))?;
        let mut buffer = vec![0u8; COPY_BYTES];
        let mut rest = Read::by_ref(file).take(bytes);
        loop {
            let read = rest.read(&mut buffer)?;
            if read == 0 {
                break;
            }
            self.hasher.update(&buffer[..read]);
        }
        file.seek(SeekFrom::Start(bytes))?;
        Ok(())
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Parts that are whole.
    pub(super) fn num_parts(&self) -> usize {
        self.parts.num_parts
    }

    /// Bytes of the part under way that are there.
    pub(super) fn part_bytes(&self) -> u64 {
        self.bytes - self.parts.bytes
    }

    /// Bytes that may still come.
    pub(super) fn missing_bytes(&self) -> u64 {
        self.expected_bytes - self.bytes
    }

    /// Forgets what is there of the part under way.
    pub(super) fn begin_part_anew(&mut self) -> Result<()> {
        if self.part_bytes() > 0 {
            self.take_over(self.parts.bytes)
                .context("cannot cut off what was fetched")?;
        }
        Ok(())
    }

    /// Adds what `reader` has to the part under way.
    ///
    /// # Errors
    /// If it cannot be read or written, or is more than the model has.
    pub(super) fn copy_from(
        &mut self,
        reader: &mut dyn Read,
        mut on_bytes: impl FnMut(u64),
    ) -> Result<()> {
        let mut buffer = vec![0u8; COPY_BYTES];
        loop {
            let read = reader.read(&mut buffer)?;
            if read == 0 {
                return Ok(());
            }
            if self.missing_bytes() < read as u64 {
                let expected = self.expected_bytes;
                self.discard();
                bail!("more than the expected {expected} bytes arrived; nothing was kept");
            }
            self.bytes += read as u64;
            self.hasher.update(&buffer[..read]);
            self.file.write_all(&buffer[..read])?;
            on_bytes(read as u64);
        }
    }

    /// The part under way is whole.
    pub(super) fn end_part(&mut self) -> Result<()> {
        self.parts = Parts {
            num_parts: self.parts.num_parts + 1,
            bytes: self.bytes,
        };
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        serde_json::to_writer(&mut file, &self.parts)?;
        file.persist(self.folder.join(PARTS))?;
        Ok(())
    }

    /// Size and SHA-256 of the whole, which is on disk then.
    pub(super) fn finish(&mut self) -> Result<(u64, String)> {
        self.file.sync_all()?;
        let hash = std::mem::take(&mut self.hasher).finalize();
        Ok((self.bytes, hex(&hash)))
    }

    /// Gives the whole file its name.
    pub(super) fn into_place(self, path: &Path) -> Result<()> {
        fs::rename(self.folder.join(ASSEMBLED), path)?;
        self.discard();
        Ok(())
    }

    /// Removes all that was fetched.
    pub(super) fn discard(&self) {
        // What stays is in the way of nobody: it is checked before it is used.
        let _ = fs::remove_dir_all(&self.folder);
    }

    /// What to say of the unfinished file in `folder`; one without a byte goes.
    pub(super) fn next_step(folder: &Path) -> Option<String> {
        let bytes = fs::metadata(folder.join(ASSEMBLED)).map_or(0, |meta| meta.len());
        if bytes == 0 {
            let _ = fs::remove_dir_all(folder);
            return None;
        }
        let megabytes = bytes.div_ceil(1_000_000);
        Some(format!(
            "{megabytes} MB are kept, and the same command goes on behind them"
        ))
    }
}

fn read_parts(folder: &Path) -> Parts {
    let text = fs::read(folder.join(PARTS)).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}
