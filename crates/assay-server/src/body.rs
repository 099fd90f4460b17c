//! Reads a JSON request body under the limits: type, encoding, size, time.

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, HeaderName, header};
use bytes::BytesMut;
use http_body_util::BodyExt;
use tokio::time::timeout;

use crate::error::ApiError;
use crate::state::AppState;

/// How much of a refused body is read and dropped, so that a client that writes before it reads gets its
/// answer instead of a broken connection.
const DISCARD_BYTES: usize = 64 << 20;

/// The bytes of a body that was declared as JSON.
pub(crate) struct JsonBody(pub(crate) Bytes);

impl FromRequest<AppState> for JsonBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &AppState) -> Result<Self, ApiError> {
        let limits = &app.config().limits;
        check_type(request.headers())?;
        let expects_continue = request.headers().contains_key(header::EXPECT);
        let declared = length(request.headers());
        let mut body = request.into_body();
        let mut collected = BytesMut::new();
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
                None => return Ok(Self(collected.freeze())),
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
