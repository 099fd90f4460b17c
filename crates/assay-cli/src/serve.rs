//! `assay serve`: load, listen, answer until told to stop.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use assay_server::ledger::Ledger;
use assay_server::{
    AppState, Limits, ParserChoice, ServerConfig, ShutdownTrigger, shutdown_channel,
};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::config::{LogFormat, ModelConfig, ServeConfig};
use crate::load::{self, Loaded};

/// Serves until a signal and a drain.
///
/// # Errors
/// If the model does not load or the address is taken.
pub(crate) fn run(config: ServeConfig) -> Result<()> {
    start_logging(config.log_format, "info");
    let runtime = runtime()?;
    // A taken address must show before the model is read.
    let listener = runtime.block_on(bind(&config))?;
    let ledger = config.ledger.as_deref().map(open_ledger).transpose()?;
    let loaded = load::load(&config.model, config.queue.get())?;
    runtime.block_on(serve(loaded, listener, config, ledger))
}

/// Opens a ledger for writing.
///
/// # Errors
/// The file cannot be written, or is something else.
pub(crate) fn open_ledger(path: &Path) -> Result<Ledger> {
    Ledger::open(path).with_context(|| format!("--ledger {}", path.display()))
}

/// Log lines of `level` and worse on the error stream; a program's own output stays clean.
pub(crate) fn start_logging(format: LogFormat, level: &str) {
    let builder = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(level))
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    // A second call in one process (tests) keeps the first subscriber.
    let _ = match format {
        LogFormat::Text => builder.with_target(false).try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
}

pub(crate) fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the HTTP runtime")
}

pub(crate) async fn bind(config: &ServeConfig) -> Result<TcpListener> {
    let address = SocketAddr::new(config.host, config.port);
    TcpListener::bind(address).await.with_context(|| {
        format!("cannot listen on {address}; is it taken? Give another with --port")
    })
}

/// Answers on `listener` until SIGTERM or SIGINT: the first drains, the second stops.
pub(crate) async fn serve(
    loaded: Loaded,
    listener: TcpListener,
    config: ServeConfig,
    ledger: Option<Ledger>,
) -> Result<()> {
    let address = listener.local_addr()?;
    let (trigger, shutdown) = shutdown_channel();
    forward_signals(trigger)?;
    if loaded.template.is_none() {
        tracing::warn!(
            model = loaded.model_id,
            "the file has no chat template: chat requests will be refused"
        );
    }
    let mut limits = Limits::default();
    if let Some(max_trie_edges) = config.max_trie_edges {
        limits.max_trie_edges = max_trie_edges.get();
    }
    if let Some(max_body_mib) = config.max_body_mib {
        limits.body_bytes = max_body_mib.get() << 20;
        limits.all_bodies_bytes = limits.all_bodies_bytes.max(limits.body_bytes);
    }
    let mut local = local_config(&loaded, &config.model);
    local.identity.overrides.reasoning_parser = config.parser_overrides.reasoning;
    local.identity.overrides.tool_parser = config.parser_overrides.tool;
    let server = ServerConfig {
        aliases: config.aliases,
        reasoning_parser: config.reasoning_parser,
        tool_parser: config.tool_parser,
        any_model_name: config.any_model_name,
        api_keys: config.api_keys,
        loopback: config.host.is_loopback(),
        cors_origins: config.cors_origins,
        drain_timeout: Duration::from_secs(config.drain_timeout_seconds),
        request_timeout: config.request_timeout_seconds.map(Duration::from_secs),
        limits,
        receipts: config.receipts,
        ledger,
        ..local
    };
    let state = state(loaded, server);
    tracing::info!("serving on http://{address}");
    assay_server::serve(listener, state, shutdown)
        .await
        .context("serving failed")
}

/// The routes of `loaded` for this process alone, without a socket.
pub(crate) fn local_state(loaded: Loaded, model: &ModelConfig, ledger: Option<Ledger>) -> AppState {
    let config = ServerConfig {
        ledger,
        ..local_config(&loaded, model)
    };
    state(loaded, config)
}

fn state(loaded: Loaded, config: ServerConfig) -> AppState {
    AppState::new(loaded.engine, loaded.tokenizer, loaded.template, config)
}

fn local_config(loaded: &Loaded, model: &ModelConfig) -> ServerConfig {
    ServerConfig {
        model_id: loaded.model_id.clone(),
        aliases: Vec::new(),
        any_model_name: true,
        api_keys: Vec::new(),
        loopback: true,
        cors_origins: Vec::new(),
        created: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs(),
        identity: loaded.identity.clone(),
        installed: loaded.installed.clone(),
        receipts: false,
        ledger: None,
        template_date: model.template_date,
        reasoning_parser: ParserChoice::default(),
        tool_parser: ParserChoice::default(),
        drain_timeout: Duration::ZERO,
        request_timeout: None,
        limits: Limits::default(),
    }
}

fn forward_signals(trigger: ShutdownTrigger) -> Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            trigger.signal();
        }
    });
    Ok(())
}
