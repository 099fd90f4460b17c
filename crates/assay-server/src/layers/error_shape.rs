//! Errors of routes that are not OpenAI's, in the shape of their own dialect, whether they arose in a handler or in a layer
//! before it.

use assay_api::ErrorBody;
use assay_api::anthropic::MessagesError;
use assay_api::decisions::validation::{SystemOneError, SystemOneErrorDetail};
use assay_api::error::ErrorObject;
use axum::Json;
use axum::extract::Request;
use axum::http::{HeaderName, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::request_id::X_REQUEST_ID;

pub(crate) const SYSTEM_ONE: &str = "/v1/systemone";
/// Begins the path of every route in Anthropic's shape.
const MESSAGES: &str = "/v1/messages";

const X_TYPESAFE_REQUEST_ID: HeaderName = HeaderName::from_static("x-typesafe-request-id");

#[derive(Clone, Copy, PartialEq, Eq)]
enum Dialect {
    SystemOne,
    Anthropic,
}

impl Dialect {
    /// `None` for OpenAI's.
    fn of(path: &str) -> Option<Self> {
        let below_messages = path.strip_prefix(MESSAGES);
        if path == SYSTEM_ONE {
            Some(Self::SystemOne)
        } else if below_messages.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
            Some(Self::Anthropic)
        } else {
            None
        }
    }

    fn body(self, status: StatusCode, error: ErrorObject) -> Response {
        match self {
            Self::SystemOne => Json(system_one(error)).into_response(),
            Self::Anthropic => {
                Json(MessagesError::new(status.as_u16(), error.message)).into_response()
            }
        }
    }
}

pub(crate) async fn shape_errors(request: Request, next: Next) -> Response {
    let Some(dialect) = Dialect::of(request.uri().path()) else {
        return next.run(request).await;
    };
    let mut response = next.run(request).await;
    if let Some(ErrorBody { error }) = response.extensions_mut().remove::<ErrorBody>() {
        let reshaped = dialect.body(response.status(), error);
        let (mut parts, _) = response.into_parts();
        parts.headers.remove(header::CONTENT_LENGTH);
        response = Response::from_parts(parts, reshaped.into_body());
    }
    if dialect == Dialect::SystemOne
        && let Some(id) = response.headers().get(X_REQUEST_ID).cloned()
    {
        response.headers_mut().insert(X_TYPESAFE_REQUEST_ID, id);
    }
    response
}

fn system_one(error: ErrorObject) -> SystemOneError {
    let error_type = match error.code.as_deref() {
        Some("invalid_api_key") => "authentication_error".to_owned(),
        Some("model_not_found") => "not_found_error".to_owned(),
        _ => error.kind,
    };
    SystemOneError {
        detail: SystemOneErrorDetail {
            error_type,
            message: error.message,
        },
    }
}
