//! `GET /metrics` in the Prometheus text format.

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use prometheus_client::encoding::prometheus_text::CONTENT_TYPE;

use crate::error::ApiError;
use crate::state::AppState;

pub(crate) async fn get(State(app): State<AppState>) -> Result<impl IntoResponse, ApiError> {
    let rendered = app.metrics().render(&app.engine_stats());
    let text = rendered.map_err(|error| ApiError::Internal(error.to_string()))?;
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], text))
}
