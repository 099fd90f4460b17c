//! Accepts connections and winds down: the first signal drains (new work gets 503, running work goes on up
//! to a limit), the second stops.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tower::ServiceExt;

use crate::config::Limits;
use crate::router::router;
use crate::stall::StallGuard;
use crate::state::AppState;

/// How long open connections get to take their last bytes after the work is done.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Pause after a failed accept, which is mostly a lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Serving,
    Draining,
    Stopped,
}

/// Tells a server to wind down; dropped, it tells nothing.
#[derive(Clone, Debug)]
pub struct ShutdownTrigger(Arc<watch::Sender<Stage>>);

/// Hears of it.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Receiver<Stage>);

/// Both ends.
pub fn shutdown_channel() -> (ShutdownTrigger, Shutdown) {
    let (sender, receiver) = watch::channel(Stage::Serving);
    (ShutdownTrigger(Arc::new(sender)), Shutdown(receiver))
}

impl ShutdownTrigger {
    /// One step further: the first call drains, the second stops.
    pub fn signal(&self) {
        self.0.send_modify(|stage| {
            *stage = match stage {
                Stage::Serving => Stage::Draining,
                Stage::Draining | Stage::Stopped => Stage::Stopped,
            };
        });
    }
}

impl Shutdown {
    async fn reached(&mut self, wanted: Stage) {
        if self.0.wait_for(|stage| *stage >= wanted).await.is_err() {
            // The trigger is gone, so no signal will ever come.
            std::future::pending::<()>().await;
        }
    }
}

/// Serves `app` on `listener` until a shutdown is complete, then stops the engine.
///
/// # Errors
/// The listener has no usable address. Faults of single connections are theirs alone.
pub async fn serve(listener: TcpListener, app: AppState, shutdown: Shutdown) -> io::Result<()> {
    let address = listener.local_addr()?;
    tracing::debug!(%address, "listening");
    let (close, _) = watch::channel(false);
    let mut connections = JoinSet::new();
    {
        let accepting = accept(&listener, &app, &close, &mut connections);
        tokio::select! {
            () = accepting => {}
            () = drained(&app, shutdown) => {}
        }
    }
    drop(listener);
    // Requests that outlived the limit get an error as their last event.
    app.stop_engine();
    close.send_replace(true);
    let closing = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(CLOSE_TIMEOUT, closing).await.is_err() {
        tracing::warn!(num_connections = connections.len(), "connections cut off");
    }
    connections.shutdown().await;
    Ok(())
}

/// Waits for the end of serving.
async fn drained(app: &AppState, mut shutdown: Shutdown) {
    shutdown.reached(Stage::Draining).await;
    let drain_timeout = app.config().drain_timeout;
    tracing::info!(timeout_s = drain_timeout.as_secs_f64(), "draining");
    app.start_draining();
    tokio::select! {
        () = app.idle() => tracing::info!("all work is done"),
        () = shutdown.reached(Stage::Stopped) => tracing::warn!("stopped before all work was done"),
        () = tokio::time::sleep(drain_timeout) => tracing::warn!("work left at the drain timeout"),
    }
}

/// Takes connections for ever, also while draining: new work is then answered with 503.
async fn accept(
    listener: &TcpListener,
    app: &AppState,
    close: &watch::Sender<bool>,
    connections: &mut JoinSet<()>,
) {
    let limit = Arc::new(Semaphore::new(app.config().limits.num_connections));
    loop {
        while connections.try_join_next().is_some() {}
        let Ok(permit) = Arc::clone(&limit).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, peer)) => {
                let served = connection(stream, app.clone(), close.subscribe());
                connections.spawn(async move {
                    if let Err(error) = served.await {
                        tracing::debug!(%peer, %error, "connection ended early");
                    }
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connection(
    stream: TcpStream,
    app: AppState,
    mut close: watch::Receiver<bool>,
) -> Result<(), hyper::Error> {
    // Chunks of a stream are small and must not wait for each other.
    let _ = stream.set_nodelay(true);
    let Limits {
        header_bytes,
        header_timeout,
        write_timeout,
        ..
    } = app.config().limits;
    let router = router(app);
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        router.clone().oneshot(request.map(Body::new))
    });
    let io = TokioIo::new(StallGuard::new(stream, write_timeout));
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header_timeout)
        .max_header_size(header_bytes)
        .serve_connection(io, service);
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        served = serving.as_mut() => return served,
        _ = close.wait_for(|close| *close) => {}
    }
    serving.as_mut().graceful_shutdown();
    serving.await
}
