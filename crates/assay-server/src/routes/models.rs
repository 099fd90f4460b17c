//! `GET /v1/models` and `GET /v1/models/{id}`.

use assay_api::openai::{Model, ModelList};
use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};

use crate::error::ApiError;
use crate::state::AppState;

pub(crate) async fn list(State(app): State<AppState>) -> Json<ModelList> {
    Json(ModelList {
        object: "list".to_owned(),
        data: vec![served(&app)],
    })
}

pub(crate) async fn get(
    State(app): State<AppState>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<Model>, ApiError> {
    let Path(id) = id.map_err(|_| ApiError::UnknownRoute("that is not UTF-8".to_owned()))?;
    app.check_model(Some(&id))?;
    Ok(Json(served(&app)))
}

fn served(app: &AppState) -> Model {
    let config = app.config();
    Model {
        id: config.model_id.clone(),
        object: "model".to_owned(),
        created: config.created,
        owned_by: "assay".to_owned(),
        max_model_len: u64::from(app.context_length()),
    }
}
