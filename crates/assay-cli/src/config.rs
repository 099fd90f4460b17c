//! Every setting of the binary, from three places: flag, then `ASSAY_*` variable, then configuration file.
//!
//! The only code that reads the environment. What leaves here is complete and checked.

use std::fs::File;
use std::io::Read;
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use assay_kernels::Isa;
use assay_models::Numerics;
use assay_tokenizer::TemplateDate;
use clap::{Args, ValueEnum};
use serde::Deserialize;

use crate::catalog::{Catalog, CatalogModel, DEFAULT_MODEL};

/// Which model, and how it is computed. Shared by every command that runs one.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ModelArgs {
    /// Path of a .gguf file, or a name that `assay pull` knows [default: smollm2-135m-instruct]
    #[arg(long, env = "ASSAY_MODEL", value_name = "PATH|NAME")]
    model: Option<String>,
    /// Longest prompt and reply together, in tokens [default: the model's own]
    #[arg(long, env = "ASSAY_CONTEXT", value_name = "TOKENS")]
    context: Option<u32>,
    /// Threads that compute [default: all cores]
    #[arg(long, env = "ASSAY_THREADS")]
    threads: Option<NonZeroUsize>,
    /// exact: 16-bit activations; fast: 8-bit [default: exact]
    #[arg(long, env = "ASSAY_NUMERICS")]
    numerics: Option<NumericsArg>,
    /// Sequences in one step [default: 8]
    #[arg(long, env = "ASSAY_PARALLEL", value_name = "N")]
    parallel: Option<NonZeroUsize>,
    /// Memory for keys and values, in MiB [default: as much as --parallel full contexts need, within half of the free memory]
    #[arg(long, env = "ASSAY_KV_MEMORY", value_name = "MIB")]
    kv_memory: Option<u64>,
    /// Date that templates see, YYYY-MM-DD [default: 2025-01-01]
    #[arg(long, env = "ASSAY_TEMPLATE_DATE", value_name = "DATE")]
    template_date: Option<String>,
    /// Configuration file (TOML, same names as the flags)
    #[arg(long, env = "ASSAY_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where fetched models lie [default: $XDG_CACHE_HOME/assay/models]
    #[arg(long, env = "ASSAY_CACHE_DIR", value_name = "DIR")]
    cache_dir: Option<PathBuf>,
    /// Force an instruction set: scalar, avx2, avx512 or amx. Changes speed, never a bit; for tests
    #[arg(long, env = "ASSAY_ISA", hide = true)]
    isa: Option<String>,
}

/// Where and for whom to serve.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// Address to listen on [default: 127.0.0.1]
    #[arg(long, env = "ASSAY_HOST")]
    host: Option<IpAddr>,
    /// Port to listen on; 0 takes a free one [default: 8080]
    #[arg(long, env = "ASSAY_PORT")]
    port: Option<u16>,
    /// Key that clients must send as a bearer token; may be given several times
    #[arg(
        long = "api-key",
        env = "ASSAY_API_KEY",
        value_name = "KEY",
        value_delimiter = ',',
        hide_env_values = true
    )]
    api_keys: Vec<String>,
    /// Listen beyond loopback without a key
    #[arg(long, env = "ASSAY_INSECURE")]
    insecure: bool,
    /// Further name that requests may use for the model; may be given several times
    #[arg(
        long = "alias",
        env = "ASSAY_ALIAS",
        value_name = "NAME",
        value_delimiter = ','
    )]
    aliases: Vec<String>,
    /// Accept every model name
    #[arg(long, env = "ASSAY_ANY_MODEL_NAME")]
    any_model_name: bool,
    /// Requests that may wait [default: 1024]
    #[arg(long, env = "ASSAY_QUEUE", value_name = "N")]
    queue: Option<NonZeroUsize>,
    /// Origin of web pages that may call, such as `https://example.org`; may be given several times
    #[arg(
        long = "cors-origin",
        env = "ASSAY_CORS_ORIGIN",
        value_name = "ORIGIN",
        value_delimiter = ','
    )]
    cors_origins: Vec<String>,
    /// Seconds that running requests get after SIGTERM [default: 30]
    #[arg(long, env = "ASSAY_DRAIN_TIMEOUT", value_name = "SECONDS")]
    drain_timeout: Option<u64>,
    /// Form of the log lines [default: text]
    #[arg(long, env = "ASSAY_LOG_FORMAT")]
    log_format: Option<LogFormat>,
}

/// Spelling of [`Numerics`] on the command line.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum NumericsArg {
    /// 16-bit activations.
    Exact,
    /// 8-bit activations.
    Fast,
}

/// Form of log lines.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// The configuration file; every key is optional.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FileConfig {
    model: Option<String>,
    context: Option<u32>,
    threads: Option<NonZeroUsize>,
    numerics: Option<NumericsArg>,
    parallel: Option<NonZeroUsize>,
    kv_memory: Option<u64>,
    template_date: Option<String>,
    cache_dir: Option<PathBuf>,
    host: Option<IpAddr>,
    port: Option<u16>,
    #[serde(default)]
    api_key: Vec<String>,
    insecure: Option<bool>,
    #[serde(default)]
    alias: Vec<String>,
    #[serde(default)]
    cors_origin: Vec<String>,
    any_model_name: Option<bool>,
    queue: Option<NonZeroUsize>,
    drain_timeout: Option<u64>,
    log_format: Option<LogFormat>,
    #[serde(default)]
    models: Vec<CatalogModel>,
}

/// A model and its computation, settled.
#[derive(Debug)]
pub(crate) struct ModelConfig {
    /// What the user called the model.
    pub(crate) model: String,
    pub(crate) context: Option<u32>,
    pub(crate) threads: NonZeroUsize,
    pub(crate) numerics: Numerics,
    pub(crate) parallel: NonZeroUsize,
    pub(crate) kv_memory_bytes: Option<u64>,
    pub(crate) template_date: TemplateDate,
    /// The same as given; part of the fingerprint.
    pub(crate) template_date_text: String,
    pub(crate) cache_dir: PathBuf,
    pub(crate) isa: Isa,
    pub(crate) catalog: Catalog,
}

/// A server, settled.
#[derive(Debug)]
pub(crate) struct ServeConfig {
    pub(crate) model: ModelConfig,
    pub(crate) host: IpAddr,
    pub(crate) port: u16,
    pub(crate) api_keys: Vec<String>,
    pub(crate) aliases: Vec<String>,
    pub(crate) any_model_name: bool,
    pub(crate) cors_origins: Vec<String>,
    pub(crate) queue: NonZeroUsize,
    pub(crate) drain_timeout_seconds: u64,
    pub(crate) log_format: LogFormat,
}

impl ModelArgs {
    /// Settles the model settings.
    ///
    /// # Errors
    /// If the configuration file cannot be read, or a value is out of range.
    pub(crate) fn resolve(self) -> Result<ModelConfig> {
        let file = read_file(self.config.as_deref())?;
        self.resolve_with(&file)
    }

    fn resolve_with(self, file: &FileConfig) -> Result<ModelConfig> {
        let isa = match &self.isa {
            None => Isa::detect(),
            Some(name) => Isa::by_name(name).with_context(|| {
                let names: Vec<&str> = Isa::available().into_iter().map(Isa::name).collect();
                format!("ASSAY_ISA={name}: this CPU has {}", names.join(", "))
            })?,
        };
        let date_text = self.template_date.or_else(|| file.template_date.clone());
        let date_text = date_text.unwrap_or_else(|| DEFAULT_DATE.to_owned());
        let template_date = TemplateDate::from_str(&date_text).context("--template-date")?;
        let context = self.context.or(file.context);
        if context == Some(0) {
            bail!("--context must be at least 1");
        }
        let kv_memory = self.kv_memory.or(file.kv_memory);
        if kv_memory == Some(0) {
            bail!("--kv-memory must be at least 1 MiB");
        }
        let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let threads = self.threads.or(file.threads).unwrap_or(cores);
        if threads.get() > MAX_THREADS {
            bail!("--threads must be at most {MAX_THREADS}, found {threads}");
        }
        let numerics = match self
            .numerics
            .or(file.numerics)
            .unwrap_or(NumericsArg::Exact)
        {
            NumericsArg::Exact => Numerics::Exact,
            NumericsArg::Fast => Numerics::Fast,
        };
        Ok(ModelConfig {
            model: self
                .model
                .or_else(|| file.model.clone())
                .unwrap_or_else(|| DEFAULT_MODEL.to_owned()),
            context,
            threads,
            numerics,
            parallel: self.parallel.or(file.parallel).unwrap_or(DEFAULT_PARALLEL),
            kv_memory_bytes: kv_memory
                .map(|mib| {
                    mib.checked_mul(1 << 20)
                        .context("--kv-memory is out of range")
                })
                .transpose()?,
            template_date,
            template_date_text: date_text,
            cache_dir: match self.cache_dir.or_else(|| file.cache_dir.clone()) {
                Some(dir) => dir,
                None => default_cache_dir()?,
            },
            isa,
            catalog: Catalog::with_extra(file.models.clone())?,
        })
    }
}

impl ServeArgs {
    /// Settles the server settings.
    ///
    /// # Errors
    /// As [`ModelArgs::resolve`], and where the server would be open to the network without a key.
    pub(crate) fn resolve(self) -> Result<ServeConfig> {
        let file = read_file(self.model.config.as_deref())?;
        let host = self
            .host
            .or(file.host)
            .unwrap_or(IpAddr::from([127, 0, 0, 1]));
        let api_keys = if self.api_keys.is_empty() {
            file.api_key.clone()
        } else {
            self.api_keys
        };
        for key in &api_keys {
            check_api_key(key)?;
        }
        let insecure = self.insecure || file.insecure.unwrap_or(false);
        if !host.is_loopback() && api_keys.is_empty() && !insecure {
            bail!(
                "--host {host} is open to the network: set --api-key KEY, or --insecure to serve without one"
            );
        }
        let mut aliases = self.aliases;
        aliases.extend(file.alias.iter().cloned());
        let mut cors_origins = self.cors_origins;
        cors_origins.extend(file.cors_origin.iter().cloned());
        for origin in &cors_origins {
            check_cors_origin(origin)?;
        }
        Ok(ServeConfig {
            cors_origins,
            host,
            port: self.port.or(file.port).unwrap_or(8080),
            api_keys,
            aliases,
            any_model_name: self.any_model_name || file.any_model_name.unwrap_or(false),
            queue: self.queue.or(file.queue).unwrap_or(DEFAULT_QUEUE),
            drain_timeout_seconds: self.drain_timeout.or(file.drain_timeout).unwrap_or(30),
            log_format: self.log_format.or(file.log_format).unwrap_or_default(),
            model: self.model.resolve_with(&file)?,
        })
    }
}

/// What templates that ask for the date are told.
const DEFAULT_DATE: &str = "2025-01-01";
const DEFAULT_PARALLEL: NonZeroUsize = NonZeroUsize::new(8).expect("eight is not zero");
/// Longest configuration file read.
const MAX_CONFIG_BYTES: u64 = 1 << 20;
/// More threads than any machine this runs on has cores.
const MAX_THREADS: usize = 1024;
const DEFAULT_QUEUE: NonZeroUsize = NonZeroUsize::new(1024).expect("1,024 is not zero");

fn read_file(path: Option<&Path>) -> Result<FileConfig> {
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

/// A key goes into an HTTP header: visible ASCII only.
fn check_api_key(key: &str) -> Result<()> {
    if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        bail!("--api-key must be visible ASCII characters without spaces");
    }
    Ok(())
}

/// An origin as browsers send it: scheme, host, perhaps a port, and nothing behind.
fn check_cors_origin(origin: &str) -> Result<()> {
    let rest = origin
        .strip_prefix("http://")
        .or_else(|| origin.strip_prefix("https://"));
    let is_host = |text: &str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
        !text.is_empty() && text.bytes().all(allowed)
    };
    if !rest.is_some_and(is_host) {
        bail!("--cors-origin must be an origin such as https://example.org, found `{origin}`");
    }
    Ok(())
}

fn default_cache_dir() -> Result<PathBuf> {
    let base = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache")))
        .context("neither XDG_CACHE_HOME nor HOME is set; give --cache-dir")?;
    Ok(base.join("assay").join("models"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        serve: ServeArgs,
    }

    fn resolve(args: &[&str]) -> Result<ServeConfig> {
        Cli::try_parse_from([&["assay"], args].concat())?
            .serve
            .resolve()
    }

    #[test]
    fn a_flag_beats_the_file_and_the_file_beats_the_default() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("assay.toml");
        std::fs::write(
            &path,
            "port = 9000\nparallel = 3\nnumerics = \"fast\"\napi-key = [\"k\"]\n",
        )
        .unwrap();
        let config = resolve(&["--config", path.to_str().unwrap(), "--parallel", "5"]).unwrap();
        assert_eq!((config.port, config.model.parallel.get()), (9000, 5));
        assert_eq!(config.model.numerics, Numerics::Fast);
        assert_eq!(config.api_keys, ["k"]);
        assert_eq!(config.queue.get(), 1024);
    }

    #[test]
    fn an_open_address_needs_a_key_or_a_word() {
        let error = resolve(&["--host", "0.0.0.0"]).unwrap_err().to_string();
        assert!(error.contains("--api-key"), "{error}");
        assert!(resolve(&["--host", "0.0.0.0", "--api-key", "k"]).is_ok());
        assert!(resolve(&["--host", "0.0.0.0", "--insecure"]).is_ok());
        assert!(resolve(&["--host", "::1"]).is_ok());
        for key in ["", "a b", "ключ", "a\n"] {
            assert!(resolve(&["--api-key", key]).is_err(), "{key:?}");
        }
    }

    #[test]
    fn values_that_mean_nothing_are_refused_by_flag() {
        let cases = [
            ["--cors-origin", "nonsense"],
            ["--cors-origin", "https://example.org/path"],
            ["--kv-memory", "0"],
            ["--kv-memory", "99999999999999999"],
            ["--threads", "100000"],
            ["--context", "0"],
            ["--config", "/dev/zero"],
        ];
        for args in cases {
            let error = format!("{:#}", resolve(&args).map(|_| ()).unwrap_err());
            assert!(error.contains(args[0]), "{args:?}: {error}");
        }
        assert!(resolve(&["--cors-origin", "http://localhost:3000"]).is_ok());
    }

    #[test]
    fn unknown_keys_and_bad_values_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("assay.toml");
        for (text, expected) in [
            ("prot = 1", "prot"),
            ("port = 70000", "port"),
            ("numerics = \"wild\"", "wild"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = format!(
                "{:#}",
                resolve(&["--config", path.to_str().unwrap()]).unwrap_err()
            );
            assert!(error.contains(expected), "{text}: {error}");
        }
        for date in [
            "2025-02-29",
            "2025-13-01",
            "25-01-01",
            "2025-1-1",
            "tomorrow",
            "2025-01-011",
        ] {
            assert!(resolve(&["--template-date", date]).is_err(), "{date}");
        }
        assert!(resolve(&["--template-date", "2024-02-29"]).is_ok());
        assert!(
            resolve(&["--isa", "sse9"])
                .unwrap_err()
                .to_string()
                .contains("scalar")
        );
    }
}
