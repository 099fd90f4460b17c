//! `GET /health`: is the engine alive. `GET /ready`: does it take work.

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::state::AppState;

pub(crate) async fn health(State(app): State<AppState>) -> Result<Json<Value>, ApiError> {
    if app.engine_is_alive() {
        Ok(Json(json!({"status": "ok"})))
    } else {
        Err(ApiError::EngineStopped)
    }
}

pub(crate) async fn ready(State(app): State<AppState>) -> Result<Json<Value>, ApiError> {
    if app.is_draining() {
        Err(ApiError::Draining)
    } else if app.engine_is_alive() {
        Ok(Json(json!({"status": "ready"})))
    } else {
        Err(ApiError::EngineStopped)
    }
}
