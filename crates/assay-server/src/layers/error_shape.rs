//! Errors of routes that are not OpenAI's, in the shape of their own dialect, whichever layer they come from.

use assay_api::ErrorBody;
use assay_api::decisions::validation::{SystemOneError, SystemOneErrorDetail};
use axum::Json;
use axum::extract::Request;
use axum::http::{HeaderName, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::request_id::X_REQUEST_ID;

pub(crate) const SYSTEM_ONE: &str = "/v1/systemone";

const X_TYPESAFE_REQUEST_ID: HeaderName = HeaderName::from_static("x-typesafe-request-id");

pub(crate) async fn shape_errors(request: Request, next: Next) -> Response {
    if request.uri().path() != SYSTEM_ONE {
        return next.run(request).await;
    }
    let mut response = next.run(request).await;
    if let Some(ErrorBody { error }) = response.extensions_mut().remove::<ErrorBody>() {
        let error_type = match error.code.as_deref() {
            Some("invalid_api_key") => "authentication_error".to_owned(),
            Some("model_not_found") => "not_found_error".to_owned(),
            _ => error.kind,
        };
        let message = error.message;
        let detail = SystemOneErrorDetail {
            error_type,
            message,
        };
        let reshaped = Json(SystemOneError { detail }).into_response();
        let (mut parts, _) = response.into_parts();
        parts.headers.remove(header::CONTENT_LENGTH);
        response = Response::from_parts(parts, reshaped.into_body());
    }
    if let Some(id) = response.headers().get(X_REQUEST_ID).cloned() {
        response.headers_mut().insert(X_TYPESAFE_REQUEST_ID, id);
    }
    response
}
