//! Where and for whom to serve.

use std::net::IpAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use assay_server::{Limits, ParserChoice};
use assay_tokenizer::{ReasoningParser, ToolParser, UnknownParser};
use clap::builder::BoolishValueParser;
use clap::{Args, ValueEnum};
use serde::Deserialize;

use super::BadSetting;
use super::file::FileConfig;
use super::model::{ModelArgs, ModelConfig};

/// Name of the parser that the template asks for.
const DETECT: &str = "auto";

/// Largest body limit that may be set: bodies are read into memory.
const MAX_BODY_MIB: usize = 1_024;

const DEFAULT_QUEUE: NonZeroUsize = NonZeroUsize::new(1024).expect("1,024 is not zero");

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
    #[arg(long, env = "ASSAY_INSECURE", value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", value_parser = BoolishValueParser::new())]
    insecure: Option<bool>,
    /// Further name that requests may use for the model; may be given several times
    #[arg(
        long = "alias",
        env = "ASSAY_ALIAS",
        value_name = "NAME",
        value_delimiter = ','
    )]
    aliases: Vec<String>,
    /// Accept every model name
    #[arg(long, env = "ASSAY_ANY_MODEL_NAME", value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", value_parser = BoolishValueParser::new())]
    any_model_name: Option<bool>,
    /// Replies that may wait, each choice of `n` counted; when none waits, one request of any size may [default: 1024]
    #[arg(long, env = "ASSAY_QUEUE", value_name = "N")]
    queue: Option<NonZeroUsize>,
    /// Token edges that the labels of one decision request may have [default: 65536]
    #[arg(long, env = "ASSAY_MAX_TRIE_EDGES", value_name = "N")]
    max_trie_edges: Option<NonZeroUsize>,
    /// Origin of web pages that may call, such as `https://example.org`; may be given several times
    #[arg(
        long = "cors-origin",
        env = "ASSAY_CORS_ORIGIN",
        value_name = "ORIGIN",
        value_delimiter = ','
    )]
    cors_origins: Vec<String>,
    /// How reasoning is told from content: auto (by the chat template), none, or think [default: auto]
    #[arg(long, env = "ASSAY_REASONING_PARSER", value_name = "NAME")]
    reasoning_parser: Option<String>,
    /// How tool calls are told from content: auto (by the chat template), none, hermes, qwen_xml or llama3_json
    /// [default: auto]
    #[arg(long, env = "ASSAY_TOOL_PARSER", value_name = "NAME")]
    tool_parser: Option<String>,
    /// Put its receipt into every reply that can carry one, as if each request said `"receipt": true`
    #[arg(long, env = "ASSAY_RECEIPTS", value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", value_parser = BoolishValueParser::new())]
    receipts: Option<bool>,
    /// SQLite file that gets the receipt of each decision and scored reply, before the answer leaves
    #[arg(long, env = "ASSAY_LEDGER", value_name = "FILE")]
    ledger: Option<PathBuf>,
    /// Seconds that running requests get after SIGTERM [default: 30]
    #[arg(long, env = "ASSAY_DRAIN_TIMEOUT", value_name = "SECONDS")]
    drain_timeout: Option<u64>,
    /// Seconds that a request may take, from its last byte to the last of its reply [default: no limit]
    #[arg(long, env = "ASSAY_REQUEST_TIMEOUT", value_name = "SECONDS")]
    request_timeout: Option<NonZeroU32>,
    /// Largest request body, in MiB; 1 to 1024 [default: 32]
    #[arg(long, env = "ASSAY_MAX_BODY", value_name = "MIB")]
    max_body: Option<NonZeroUsize>,
    /// Form of the log lines [default: text]
    #[arg(long, env = "ASSAY_LOG_FORMAT")]
    log_format: Option<LogFormat>,
    /// Least of the log lines; info has one for each request [default: info]
    #[arg(long, env = "ASSAY_LOG_LEVEL")]
    log_level: Option<LogLevel>,
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

/// Least of the log lines that are written.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogLevel {
    /// What must be looked at.
    Error,
    /// What may have to be.
    Warn,
    /// One line a request.
    #[default]
    Info,
    /// Connections too.
    Debug,
    /// Whatever the libraries say.
    Trace,
}

impl LogLevel {
    /// As a log filter spells it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

/// Names of parsers that were given.
#[derive(Clone, Debug, Default)]
pub(crate) struct ParserOverrides {
    pub(crate) reasoning: Option<String>,
    pub(crate) tool: Option<String>,
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
    pub(crate) reasoning_parser: ParserChoice<ReasoningParser>,
    pub(crate) tool_parser: ParserChoice<ToolParser>,
    /// The parsers' names, where they are not found by the template.
    pub(crate) parser_overrides: ParserOverrides,
    pub(crate) receipts: bool,
    pub(crate) ledger: Option<PathBuf>,
    pub(crate) drain_timeout_seconds: u64,
    pub(crate) request_timeout_seconds: Option<u64>,
    pub(crate) limits: Limits,
    pub(crate) log_format: LogFormat,
    pub(crate) log_level: LogLevel,
    /// The configuration file, where one was named.
    pub(crate) file: Option<PathBuf>,
}

impl ServeArgs {
    /// Settles the server settings.
    ///
    /// # Errors
    /// As [`ModelArgs::resolve`], and where the server would be open to the network without a key.
    pub(crate) fn resolve(self) -> Result<ServeConfig, BadSetting> {
        let named = self.model.weights.store.config.clone();
        let file = self.model.weights.store.read_file()?;
        let config = self.resolve_with(file)?;
        Ok(ServeConfig {
            file: named,
            ..config
        })
    }

    fn resolve_with(self, file: FileConfig) -> Result<ServeConfig> {
        let host = self
            .host
            .or(file.host)
            .unwrap_or(IpAddr::from([127, 0, 0, 1]));
        let api_keys = given_or(self.api_keys, &file.api_key);
        for key in &api_keys {
            check_api_key(key)?;
        }
        let insecure = self.insecure.or(file.insecure).unwrap_or(false);
        if !host.is_loopback() && api_keys.is_empty() && !insecure {
            bail!(
                "--host {host} is open to the network: set --api-key KEY, or --insecure to serve without one"
            );
        }
        let mut limits = Limits::default();
        if let Some(mib) = self.max_body.or(file.max_body) {
            if mib.get() > MAX_BODY_MIB {
                bail!("--max-body: must be 1 to {MAX_BODY_MIB} MiB");
            }
            limits.body_bytes = mib.get() << 20;
            limits.all_bodies_bytes = limits.all_bodies_bytes.max(limits.body_bytes);
        }
        if let Some(num_edges) = self.max_trie_edges.or(file.max_trie_edges) {
            limits.max_trie_edges = num_edges.get();
        }
        let request_timeout = self.request_timeout.or(file.request_timeout);
        let aliases = given_or(self.aliases, &file.alias);
        let cors_origins = given_or(self.cors_origins, &file.cors_origin);
        for origin in &cors_origins {
            check_cors_origin(origin)?;
        }
        let reasoning_parser = self.reasoning_parser.or(file.reasoning_parser.clone());
        let tool_parser = self.tool_parser.or(file.tool_parser.clone());
        Ok(ServeConfig {
            reasoning_parser: parser_choice(reasoning_parser.as_deref())
                .context("--reasoning-parser")?,
            tool_parser: parser_choice(tool_parser.as_deref()).context("--tool-parser")?,
            parser_overrides: ParserOverrides {
                reasoning: reasoning_parser.filter(|name| name != DETECT),
                tool: tool_parser.filter(|name| name != DETECT),
            },
            receipts: self.receipts.or(file.receipts).unwrap_or(false),
            ledger: self.ledger.or_else(|| file.ledger.clone()),
            cors_origins,
            host,
            port: self.port.or(file.port).unwrap_or(8080),
            api_keys,
            aliases,
            any_model_name: self.any_model_name.or(file.any_model_name).unwrap_or(false),
            queue: self.queue.or(file.queue).unwrap_or(DEFAULT_QUEUE),
            drain_timeout_seconds: self.drain_timeout.or(file.drain_timeout).unwrap_or(30),
            request_timeout_seconds: request_timeout.map(|seconds| u64::from(seconds.get())),
            limits,
            log_format: self.log_format.or(file.log_format).unwrap_or_default(),
            log_level: self.log_level.or(file.log_level).unwrap_or_default(),
            file: None,
            model: self.model.resolve_with(&file)?,
        })
    }
}

/// What was given by flag or variable, else what the file says: lists are not added up.
fn given_or(given: Vec<String>, file: &Option<Vec<String>>) -> Vec<String> {
    match file {
        Some(listed) if given.is_empty() => listed.clone(),
        _ => given,
    }
}

fn parser_choice<T>(name: Option<&str>) -> Result<ParserChoice<T>>
where
    T: FromStr<Err = UnknownParser>,
{
    Ok(match name {
        None | Some(DETECT) => ParserChoice::Detect,
        Some("none") => ParserChoice::Off,
        Some(name) => ParserChoice::Named(name.parse()?),
    })
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
