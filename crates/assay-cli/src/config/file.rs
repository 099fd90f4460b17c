//! The configuration file: TOML, the flags' names as keys.

use std::fs::File;
use std::io::Read;
use std::net::IpAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use serde::Deserialize;

use super::device::Device;
use super::model::{NumericsArg, SpeculationArg};
use super::serve::{LogFormat, LogLevel};
use crate::catalog::CatalogModel;

/// Every key with its default and what it means; equal to no file at all.
pub(crate) const EXAMPLE: &str = include_str!("../../assay.toml");

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
    pub(super) gpu_layers: Option<usize>,
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
    pub(super) api_key: Option<Vec<String>>,
    pub(super) insecure: Option<bool>,
    pub(super) alias: Option<Vec<String>>,
    pub(super) cors_origin: Option<Vec<String>>,
    pub(super) any_model_name: Option<bool>,
    pub(super) queue: Option<NonZeroUsize>,
    pub(super) reasoning_parser: Option<String>,
    pub(super) tool_parser: Option<String>,
    pub(super) max_trie_edges: Option<NonZeroUsize>,
    pub(super) receipts: Option<bool>,
    pub(super) ledger: Option<PathBuf>,
    pub(super) drain_timeout: Option<u64>,
    pub(super) request_timeout: Option<NonZeroU32>,
    pub(super) max_body: Option<NonZeroUsize>,
    pub(super) log_format: Option<LogFormat>,
    pub(super) log_level: Option<LogLevel>,
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
    let file = File::open(path).with_context(|| format!("--config: cannot read {shown}"))?;
    let mut text = String::new();
    // A device or a wrong file must not fill the memory.
    file.take(MAX_CONFIG_BYTES + 1)
        .read_to_string(&mut text)
        .with_context(|| format!("--config: cannot read {shown}"))?;
    if text.len() as u64 > MAX_CONFIG_BYTES {
        bail!("--config {shown}: longer than {MAX_CONFIG_BYTES} bytes, so it is no configuration");
    }
    toml::from_str(&text).map_err(|error| fault(path, &text, &error))
}

/// What is wrong, and in which line: a value's fault does not name its key, so the line stands there too.
fn fault(path: &Path, text: &str, error: &toml::de::Error) -> anyhow::Error {
    let shown = path.display();
    let message = error.message();
    let before = error.span().and_then(|span| text.get(..span.start));
    let Some(before) = before else {
        return anyhow!("--config {shown}: {message}");
    };
    let number = before.matches('\n').count();
    let line = text.lines().nth(number).unwrap_or_default().trim();
    let number = number + 1;
    anyhow!(
        "--config {shown}, line {number}, `{line}`: {message}; `assay config` prints every key with its default"
    )
}
