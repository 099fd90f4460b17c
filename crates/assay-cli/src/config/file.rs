//! The configuration file: TOML, the flags' names as keys.

use std::fs::File;
use std::io::Read;
use std::net::IpAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::device::Device;
use super::model::{NumericsArg, SpeculationArg};
use super::serve::LogFormat;
use crate::catalog::CatalogModel;

/// Longest configuration file read.
const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// The configuration file; every key is optional.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct FileConfig {
    pub(super) model: Option<String>,
    pub(super) context: Option<u32>,
    pub(super) threads: Option<NonZeroUsize>,
    pub(super) numerics: Option<NumericsArg>,
    pub(super) device: Option<Device>,
    pub(super) parallel: Option<NonZeroUsize>,
    pub(super) kv: Option<String>,
    pub(super) no_prefix_cache: Option<bool>,
    pub(super) kv_memory: Option<u64>,
    pub(super) speculation: Option<SpeculationArg>,
    pub(super) draft_model: Option<PathBuf>,
    pub(super) template_date: Option<String>,
    pub(super) cache_packed: Option<bool>,
    pub(super) cache_dir: Option<PathBuf>,
    pub(super) host: Option<IpAddr>,
    pub(super) port: Option<u16>,
    #[serde(default)]
    pub(super) api_key: Vec<String>,
    pub(super) insecure: Option<bool>,
    #[serde(default)]
    pub(super) alias: Vec<String>,
    #[serde(default)]
    pub(super) cors_origin: Vec<String>,
    pub(super) any_model_name: Option<bool>,
    pub(super) queue: Option<NonZeroUsize>,
    pub(super) reasoning_parser: Option<String>,
    pub(super) tool_parser: Option<String>,
    pub(super) max_trie_edges: Option<NonZeroUsize>,
    pub(super) drain_timeout: Option<u64>,
    pub(super) request_timeout: Option<NonZeroU32>,
    pub(super) max_body: Option<NonZeroUsize>,
    pub(super) log_format: Option<LogFormat>,
    /// `[[models]]` tables: further models that go by a name, each with the keys of [`CatalogModel`].
    #[serde(default)]
    pub(super) models: Vec<CatalogModel>,
}

/// The file at `path`, or no settings where none is given.
pub(super) fn read_file(path: Option<&Path>) -> Result<FileConfig> {
    let Some(path) = path else {
        return Ok(FileConfig::default());
    };
    let shown = path.display();
    let file = File::open(path).with_context(|| format!("cannot read {shown}"))?;
    let mut text = String::new();
    // A device or a wrong file must not fill the memory.
    file.take(MAX_CONFIG_BYTES + 1)
        .read_to_string(&mut text)
        .with_context(|| format!("cannot read {shown}"))?;
    if text.len() as u64 > MAX_CONFIG_BYTES {
        bail!("--config {shown}: longer than {MAX_CONFIG_BYTES} bytes, so it is no configuration");
    }
    toml::from_str(&text).with_context(|| format!("{shown} is not a valid configuration"))
}
