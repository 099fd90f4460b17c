//! `POST /v1/systemone`. Faults of the body are 422 with their place; `layers/error_shape.rs` writes all other errors.

use assay_api::FieldError;
use assay_api::decisions::systemone::{SystemOneRequest, SystemOneResponse};
use assay_api::decisions::validation::ValidationErrors;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::body::JsonBody;
use crate::convert::decisions::systemone;
use crate::deciding::Deciding;
use crate::error::ApiError;
use crate::ignored;
use crate::receipts::Scored;
use crate::state::AppState;

pub(crate) async fn create(
    State(app): State<AppState>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let request = match SystemOneRequest::from_json(&body.bytes) {
        Ok(request) => request,
        Err(errors) => return Ok(unprocessable(errors)),
    };
    if request.has_assets {
        let what = "an asset, as this model does not see,";
        return Err(FieldError::unsupported("assets", what).into());
    }
    app.check_model(request.model.as_deref())?;
    let ids = request.ids();
    match answer(&app, request, body).await {
        Err(ApiError::Field(error)) => Ok(unprocessable(ValidationErrors::new(&error, &ids))),
        answered => answered,
    }
}

async fn answer(
    app: &AppState,
    request: SystemOneRequest,
    body: JsonBody,
) -> Result<Response, ApiError> {
    // Nothing is drawn, so no seed is used.
    let names = app.reply_names("so", Some(0));
    let asks = systemone::asks(&request);
    let receipt = app.receipt_order(
        &names,
        "/v1/systemone",
        &body.bytes,
        request.settings.receipt,
        Scored::Yes,
    );
    let received = body.received;
    drop(body);
    let mut deciding = Deciding::begin(app, received, receipt)?;
    let (outcomes, counts) = deciding.read(asks, &request.settings, "state").await?;
    let x_receipt = deciding.complete().await?;
    let reply = SystemOneResponse {
        x_receipt,
        ..systemone::reply(&request, outcomes, counts, names)
    };
    let mut response = Json(reply).into_response();
    ignored::list(&request.ignored, &mut response);
    Ok(response)
}

fn unprocessable(errors: ValidationErrors) -> Response {
    (StatusCode::UNPROCESSABLE_ENTITY, Json(errors)).into_response()
}
