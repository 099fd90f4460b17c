//! How long a request may take, from its last byte to the last of its reply.

use std::time::{Duration, Instant};

use crate::error::ApiError;

/// When a request must be through; never, where no limit is set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Option<(Instant, Duration)>);

impl Deadline {
    /// `timeout` after `received`.
    pub(crate) fn after(received: Instant, timeout: Option<Duration>) -> Self {
        let at = |timeout| Some((received.checked_add(timeout)?, timeout));
        Self(timeout.and_then(at))
    }

    /// Does `work` while there is time. What it waits for is dropped otherwise, by which the engine frees its places.
    ///
    /// # Errors
    /// The time is over.
    pub(crate) async fn bound<T>(self, work: impl Future<Output = T>) -> Result<T, ApiError> {
        let Some((at, timeout)) = self.0 else {
            return Ok(work.await);
        };
        let over = ApiError::DeadlineExceeded { timeout };
        if Instant::now() >= at {
            return Err(over);
        }
        let bound = tokio::time::timeout_at(at.into(), work).await;
        bound.map_err(|_| over)
    }
}
