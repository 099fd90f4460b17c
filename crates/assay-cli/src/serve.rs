//! `assay serve`: load, listen, answer until told to stop.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use assay_receipt::Identity;
use assay_server::ledger::Ledger;
use assay_server::{AppState, Limits, ParserChoice, ServerConfig, Shutdown, shutdown_channel};
use tokio::net::TcpListener;

use crate::config::{ModelConfig, ServeConfig};
use crate::interrupt::{Interrupt, Interrupted};
use crate::load::{self, Loaded};
use crate::logging;

/// Serves until a signal and a drain.
///
/// # Errors
/// If the model does not load or the address is taken.
pub(crate) fn run(config: ServeConfig, interrupt: &Interrupt) -> Result<()> {
    let _log = logging::start(config.log_format, config.log_level.name(), interrupt)?;
    let runtime = runtime()?;
    // A taken address must show before the model is read.
    let listener = runtime.block_on(bind(&config))?;
    let ledger = config.ledger.as_deref().map(open_ledger).transpose()?;
    let loaded = load::load(&config.model, config.queue.get(), interrupt)?;
    let (on_signal, wind_down) = wind_down();
    interrupt.hand_over(on_signal);
    runtime.block_on(serve(loaded, listener, config, ledger, wind_down))
}

/// Opens a ledger for writing.
///
/// # Errors
/// The file cannot be written, or is something else.
pub(crate) fn open_ledger(path: &Path) -> Result<Ledger> {
    Ledger::open(path).with_context(|| format!("--ledger {}", path.display()))
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

/// How a server learns that it is to end.
pub(crate) struct WindDown {
    shutdown: Shutdown,
    /// Whether the last signal was a SIGINT.
    was_interrupted: Arc<AtomicBool>,
}

/// What acts on signals, and the server's end of it: the first signal drains, the second stops.
pub(crate) fn wind_down() -> (impl Fn(Interrupted) + Send + 'static, WindDown) {
    let (trigger, shutdown) = shutdown_channel();
    let was_interrupted = Arc::new(AtomicBool::new(false));
    let is_interrupted = Arc::clone(&was_interrupted);
    let on_signal = move |signal| {
        is_interrupted.store(signal == Interrupted::BySigint, Ordering::Relaxed);
        trigger.signal();
    };
    let wind_down = WindDown {
        shutdown,
        was_interrupted,
    };
    (on_signal, wind_down)
}

/// Answers on `listener` until it is wound down.
///
/// # Errors
/// [`Interrupted`] once all is done after a SIGINT; after a SIGTERM that is what was asked for.
pub(crate) async fn serve(
    loaded: Loaded,
    listener: TcpListener,
    config: ServeConfig,
    ledger: Option<Ledger>,
    WindDown {
        shutdown,
        was_interrupted,
    }: WindDown,
) -> Result<()> {
    let address = listener.local_addr()?;
    if loaded.template.is_none() {
        tracing::warn!(
            model = loaded.model_id,
            "the file has no chat template: chat requests will be refused"
        );
    }
    let mut local = local_config(&loaded, &config.model);
    override_parsers(&mut local.identity, &config);
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
        limits: config.limits,
        receipts: config.receipts,
        ledger,
        ..local
    };
    let state = state(loaded, server);
    tracing::info!("serving on http://{address}");
    assay_server::serve(listener, state, shutdown)
        .await
        .context("serving failed")?;
    if was_interrupted.load(Ordering::Relaxed) {
        return Err(Interrupted::BySigint.into());
    }
    Ok(())
}

/// Parsers that were named are part of what answers.
pub(crate) fn override_parsers(identity: &mut Identity, config: &ServeConfig) {
    identity.overrides.reasoning_parser = config.parser_overrides.reasoning.clone();
    identity.overrides.tool_parser = config.parser_overrides.tool.clone();
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
