//! Whether new work is taken, and how much is under way: what a draining server waits for.

use std::sync::Arc;

use tokio::sync::watch;

/// Shared by all requests.
#[derive(Debug)]
pub(crate) struct Lifecycle {
    draining: watch::Sender<bool>,
    num_running: Arc<watch::Sender<usize>>,
}

/// One request under way; dropping it counts it out.
#[derive(Debug)]
pub(crate) struct Running(Arc<watch::Sender<usize>>);

impl Lifecycle {
    pub(crate) fn new() -> Self {
        Self {
            draining: watch::Sender::new(false),
            num_running: Arc::new(watch::Sender::new(0)),
        }
    }

    pub(crate) fn is_draining(&self) -> bool {
        *self.draining.borrow()
    }

    pub(crate) fn start_draining(&self) {
        self.draining.send_replace(true);
    }

    /// Counts a request in; `None` once the server drains.
    pub(crate) fn begin(&self) -> Option<Running> {
        // Counted first, so that a drain that begins in between still waits for it.
        self.num_running.send_modify(|count| *count += 1);
        let running = Running(Arc::clone(&self.num_running));
        (!self.is_draining()).then_some(running)
    }

    /// Waits until nothing is under way.
    pub(crate) async fn idle(&self) {
        let mut count = self.num_running.subscribe();
        // The sender lives as long as `self`.
        let _ = count.wait_for(|count| *count == 0).await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
