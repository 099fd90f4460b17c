//! Names every request, logs it, and turns a panic of its handler into a 500 that leaves the server up.

use std::panic::AssertUnwindSafe;
use std::time::Instant;

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use tracing::Instrument;

use crate::error::ApiError;
use crate::random::random_u64;

pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Longest name taken over from a client.
const MAX_ID_BYTES: usize = 128;

pub(crate) async fn name_requests(request: Request, next: Next) -> Response {
    let started = Instant::now();
    let id = request_id(&request);
    let span = tracing::info_span!(
        "request",
        request_id = id.to_str().unwrap_or(""),
        method = %request.method(),
        path = request.uri().path(),
    );
    let run = AssertUnwindSafe(next.run(request)).catch_unwind();
    let ran = run.instrument(span.clone()).await;
    let _entered = span.enter();
    let mut response =
        ran.unwrap_or_else(|_| ApiError::Internal("a handler panicked".to_owned()).into_response());
    response.headers_mut().insert(X_REQUEST_ID, id);
    let status = response.status().as_u16();
    let elapsed_ms = started.elapsed().as_millis();
    tracing::info!(status, elapsed_ms, "answered");
    response
}

/// The client's own name for the request where it is short and plain, otherwise a new one.
fn request_id(request: &Request) -> HeaderValue {
    let given = request.headers().get(X_REQUEST_ID).filter(|id| {
        let bytes = id.as_bytes();
        (1..=MAX_ID_BYTES).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic)
    });
    given.cloned().unwrap_or_else(|| {
        let id = format!("req-{:016x}", random_u64());
        HeaderValue::from_str(&id).expect("hexadecimal is a valid header value")
    })
}
