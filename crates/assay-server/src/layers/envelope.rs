//! Errors of the Anthropic routes in their own envelope, wherever they arose: in a handler or in a layer before it.

use assay_api::ErrorBody;
use assay_api::anthropic::MessagesError;
use axum::Json;
use axum::extract::Request;
use axum::http::header;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// Begins the path of every route whose errors have that envelope.
const PREFIX: &str = "/v1/messages";

pub(crate) async fn translate_errors(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let rest = path.strip_prefix(PREFIX);
    let is_own = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let mut response = next.run(request).await;
    let Some(ErrorBody { error }) = response.extensions_mut().remove::<ErrorBody>() else {
        return response;
    };
    if !is_own {
        return response;
    }
    let status = response.status();
    let body = MessagesError::new(status.as_u16(), error.message);
    let mut translated = (status, Json(body)).into_response();
    for (name, value) in response.headers() {
        if name != header::CONTENT_LENGTH && name != header::CONTENT_TYPE {
            translated.headers_mut().append(name, value.clone());
        }
    }
    translated
}
