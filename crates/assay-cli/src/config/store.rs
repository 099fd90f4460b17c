//! Which models have names, and where fetched ones lie.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;

use super::BadSetting;
use super::file::{FileConfig, read_file};
use crate::catalog::Catalog;

/// Settings of every command that finds a model by name.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct StoreArgs {
    /// Configuration file (TOML, same names as the flags)
    #[arg(long, env = "ASSAY_CONFIG", value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Where fetched models lie [default: $XDG_CACHE_HOME/assay/models]
    #[arg(long, env = "ASSAY_CACHE_DIR", value_name = "DIR")]
    cache_dir: Option<PathBuf>,
}

/// The store of named models, settled.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) catalog: Catalog,
    pub(crate) cache_dir: PathBuf,
}

impl StoreArgs {
    /// Settles the store.
    ///
    /// # Errors
    /// If the configuration file cannot be read, or names a model wrongly.
    pub(crate) fn resolve(self) -> Result<Store, BadSetting> {
        let file = self.read_file()?;
        Ok(self.resolve_with(&file)?)
    }

    /// The configuration file that these settings name.
    pub(super) fn read_file(&self) -> Result<FileConfig> {
        read_file(self.config.as_deref())
    }

    pub(super) fn resolve_with(self, file: &FileConfig) -> Result<Store> {
        Ok(Store {
            catalog: Catalog::with_extra(file.models.clone())?,
            cache_dir: match self.cache_dir.or_else(|| file.cache_dir.clone()) {
                Some(dir) => dir,
                None => default_cache_dir()?,
            },
        })
    }
}

fn default_cache_dir() -> Result<PathBuf> {
    let base = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache")))
        .context("neither XDG_CACHE_HOME nor HOME is set; give --cache-dir")?;
    Ok(base.join("assay").join("models"))
}
