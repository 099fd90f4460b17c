//! `POST /v1/decisions`.

use assay_api::decisions::openai::DecisionRequest;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};

use crate::body::JsonBody;
use crate::convert::decisions::openai;
use crate::deciding::Deciding;
use crate::error::ApiError;
use crate::ignored;
use crate::state::AppState;

pub(crate) async fn create(
    State(app): State<AppState>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let request = DecisionRequest::from_json(&body.bytes)?;
    app.check_model(request.model.as_deref())?;
    // Nothing is drawn, so no seed is used.
    let names = app.reply_names("dec", Some(0));
    let asks = openai::asks(&request);
    let received = body.received;
    drop(body);
    let deciding = Deciding::begin(&app, received)?;
    let (outcomes, counts) = deciding.read(asks, &request.settings, "input").await?;
    deciding.complete();
    let unknown = request.ignored.clone();
    let mut response = Json(openai::reply(request, outcomes, counts, names)).into_response();
    ignored::list(&unknown, &mut response);
    Ok(response)
}
