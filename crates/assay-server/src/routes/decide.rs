//! `POST /v1/decide`.

use assay_api::decisions::decide::{DecideRequest, Decided};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use crate::body::JsonBody;
use crate::convert::decisions::prompt::PROMPT_FORMAT;
use crate::convert::decisions::schema::search::search;
use crate::deciding::Deciding;
use crate::error::ApiError;
use crate::ignored;
use crate::receipts::Scored;
use crate::state::AppState;

pub(crate) async fn create(
    State(app): State<AppState>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let request = DecideRequest::from_json(&body.bytes)?;
    app.check_model(request.model.as_deref())?;
    // Nothing is drawn, so no seed is used.
    let names = app.reply_names("decide", Some(0));
    let receipt = app.receipt_order(
        &names,
        "/v1/decide",
        &body.bytes,
        request.settings.receipt,
        Scored::Yes,
    );
    let received = body.received;
    drop(body);
    let mut deciding = Deciding::begin(&app, received, receipt)?;
    let found = search(&mut deciding, &request).await?;
    let receipt = deciding.complete().await?;
    let best = found.instances.first();
    let probability = best.map_or(0.0, |best| best.probability);
    let refusal = found.refused.filter(|(_, beam)| *beam >= probability);
    let answer = match (&refusal, best) {
        (None, Some(best)) => best.value.clone(),
        _ => Value::Null,
    };
    let reply = Decided {
        id: names.id,
        object: "decided".to_owned(),
        created: names.created,
        model: names.model,
        answer,
        probability,
        fields: found.fields,
        instances: found.instances,
        unexplored_mass: found.unexplored_mass,
        refusal: refusal.map(|(path, _)| path),
        usage: found.counts.openai(),
        system_fingerprint: names.system_fingerprint,
        prompt_format: PROMPT_FORMAT.to_owned(),
        receipt,
    };
    let mut response = Json(reply).into_response();
    ignored::list(&request.ignored, &mut response);
    Ok(response)
}
