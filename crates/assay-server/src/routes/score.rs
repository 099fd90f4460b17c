//! `POST /v1/score`.

use assay_api::score::ScoreRequest;
use axum::extract::State;
use axum::response::Response;

use crate::body::JsonBody;
use crate::convert::score::{self, ScoreShape};
use crate::error::ApiError;
use crate::places::TextWork;
use crate::sse;
use crate::state::{AppState, Delivery, Terms};

pub(crate) async fn create(
    State(app): State<AppState>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let mut asked = ScoreRequest::from_json(&body.bytes)?;
    app.check_model(asked.model.as_deref())?;
    let ignored = std::mem::take(&mut asked.ignored);
    // Nothing is drawn, so no seed is used.
    let names = app.reply_names("score", Some(0));
    let terms = Terms {
        work: TextWork::Words,
        delivery: Delivery::Whole,
    };
    let submitted = app.submit(body.received, terms, move |text, limits| {
        let work = score::build(&asked, text, limits)?;
        Ok((ScoreShape::new(names, work.len()), work))
    });
    let (shape, reply) = submitted.await?;
    drop(body);
    sse::answer(&app, reply, shape, false, &ignored).await
}
