//! Reads a JSON request body under the limits: type, encoding, size, time.

use std::sync::Arc;
use std::time::Instant;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, HeaderName, header};
use bytes::BytesMut;
use http_body_util::BodyExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::error::ApiError;
use crate::state::AppState;

/// How much of a refused body is read and dropped, so that a client that writes before it reads gets its
/// answer instead of a broken connection.
const DISCARD_BYTES: usize = 64 << 20;

/// Unit in which the memory for all bodies is shared out.
const BUDGET_UNIT_BYTES: usize = 1 << 10;

/// The bytes of a body that was declared as JSON.
#[derive(Debug)]
pub(crate) struct JsonBody {
    pub(crate) bytes: Bytes,
    /// When the last of them was there.
    pub(crate) received: Instant,
    /// Held as long as the body counts.
    _share: BodyShare,
}

/// Memory for all bodies at once: many clients with large bodies must not add up to more than there is.
#[derive(Debug)]
pub(crate) struct BodyBudget(Arc<Semaphore>);

/// One body's part of it.
#[derive(Debug)]
struct BodyShare {
    budget: Arc<Semaphore>,
    taken: Option<OwnedSemaphorePermit>,
    num_units: usize,
}

impl BodyBudget {
    pub(crate) fn new(all_bodies_bytes: usize) -> Self {
        let num_units = all_bodies_bytes / BUDGET_UNIT_BYTES;
        Self(Arc::new(Semaphore::new(
            num_units.min(Semaphore::MAX_PERMITS),
        )))
    }

    fn share(&self) -> BodyShare {
        BodyShare {
            budget: Arc::clone(&self.0),
            taken: None,
            num_units: 0,
        }
    }
}

impl BodyShare {
    /// Takes what `num_bytes` in all need; never waits, since two that wait for each other would for ever.
    fn grow_to(&mut self, num_bytes: usize) -> Result<(), ApiError> {
        let needed = num_bytes.div_ceil(BUDGET_UNIT_BYTES);
        let more = needed.saturating_sub(self.num_units);
        let more = u32::try_from(more).map_err(|_| ApiError::QueueFull)?;
        let permit = Arc::clone(&self.budget)
            .try_acquire_many_owned(more)
            .map_err(|_| ApiError::QueueFull)?;
        match &mut self.taken {
            Some(taken) => taken.merge(permit),
            none => *none = Some(permit),
        }
        self.num_units = self.num_units.max(needed);
        Ok(())
    }
}

impl FromRequest<AppState> for JsonBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &AppState) -> Result<Self, ApiError> {
        let limits = &app.config().limits;
        check_type(request.headers())?;
        let expects_continue = request.headers().contains_key(header::EXPECT);
        let declared = length(request.headers());
        let mut body = request.into_body();
        let mut collected = BytesMut::new();
        let mut share = app.body_budget().share();
        if declared.is_some_and(|bytes| bytes > limits.body_bytes) {
            // A client that asked first has sent nothing yet.
            if !expects_continue {
                discard(body, app).await;
            }
            return Err(ApiError::BodyTooLarge {
                limit_bytes: limits.body_bytes,
            });
        }
        loop {
            let frame = timeout(limits.body_timeout, body.frame()).await;
            let data = match frame.map_err(|_| ApiError::BodyTimeout)? {
                None => {
                    return Ok(Self {
                        bytes: collected.freeze(),
                        received: Instant::now(),
                        _share: share,
                    });
                }
                Some(Err(_)) => return Err(ApiError::BodyBroken),
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            };
            if collected.len() + data.len() > limits.body_bytes {
                drop(collected);
                discard(body, app).await;
                return Err(ApiError::BodyTooLarge {
                    limit_bytes: limits.body_bytes,
                });
            }
            share.grow_to(collected.len() + data.len())?;
            collected.extend_from_slice(&data);
        }
    }
}

fn check_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or(""));
    if let Some(encoding) = text(header::CONTENT_ENCODING)
        && !encoding.eq_ignore_ascii_case("identity")
    {
        let message = "an encoded body is not supported; send it without `Content-Encoding`";
        return Err(ApiError::WrongContentType(message.to_owned()));
    }
    let declared = text(header::CONTENT_TYPE).unwrap_or("");
    let media_type = declared.split(';').next().unwrap_or("").trim();
    if media_type.eq_ignore_ascii_case("application/json") {
        Ok(())
    } else {
        let message = "the body must be sent as `Content-Type: application/json`";
        Err(ApiError::WrongContentType(message.to_owned()))
    }
}

fn length(headers: &HeaderMap) -> Option<usize> {
    headers
        .get(header::CONTENT_LENGTH)?
        .to_str()
        .ok()?
        .parse()
        .ok()
}

async fn discard(mut body: Body, app: &AppState) {
    let mut left = DISCARD_BYTES;
    let reading = async {
        while let Some(Ok(frame)) = body.frame().await {
            let num_bytes = frame.data_ref().map_or(0, Bytes::len);
            match left.checked_sub(num_bytes) {
                Some(rest) => left = rest,
                None => break,
            }
        }
    };
    // Late or not, the answer is the same.
    let _ = timeout(app.config().limits.body_timeout, reading).await;
}
