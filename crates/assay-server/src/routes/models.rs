//! `GET /v1/models` and `GET /v1/models/{id}`.

use assay_api::decisions::schema::unix_date;
use assay_api::openai::{Model, ModelCard, ModelList};
use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};

use crate::error::ApiError;
use crate::state::{AppState, SYSTEM_ONE_ALIAS};

pub(crate) async fn list(State(app): State<AppState>) -> Json<ModelList> {
    let model = served(&app);
    let card = |name: &str, description: &str| ModelCard {
        name: name.to_owned(),
        description: description.to_owned(),
        release_date: unix_date(model.created),
    };
    let models = vec![
        card(&model.id, "The model that is served here"),
        card(SYSTEM_ONE_ALIAS, "Another name of it"),
    ];
    Json(ModelList {
        object: "list".to_owned(),
        data: vec![model],
        models,
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
