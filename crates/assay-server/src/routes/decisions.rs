//! `POST /v1/decisions`.

use assay_api::decisions::openai::{Decision, DecisionRequest};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};

use crate::body::JsonBody;
use crate::convert::decisions::openai;
use crate::deciding::Deciding;
use crate::error::ApiError;
use crate::ignored;
use crate::receipts::Scored;
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
    let receipt = app.receipt_order(
        &names,
        "/v1/decisions",
        &body.bytes,
        request.settings.receipt,
        Scored::Yes,
    );
    let received = body.received;
    drop(body);
    let mut deciding = Deciding::begin(&app, received, receipt)?;
    let (outcomes, counts) = deciding.read(asks, &request.settings, "input").await?;
    let receipt = deciding.complete().await?;
    let unknown = request.ignored.clone();
    let reply = Decision {
        receipt,
        ..openai::reply(request, outcomes, counts, names)
    };
    let mut response = Json(reply).into_response();
    ignored::list(&unknown, &mut response);
    Ok(response)
}
