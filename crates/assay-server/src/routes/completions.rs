//! `POST /v1/completions`.

use assay_api::openai::CompletionRequest;
use axum::extract::State;
use axum::response::Response;

use crate::body::JsonBody;
use crate::convert::completion::CompletionShape;
use crate::convert::completion_request;
use crate::error::ApiError;
use crate::sse;
use crate::state::{AppState, Terms};

pub(crate) async fn create(
    State(app): State<AppState>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let mut asked = CompletionRequest::from_json(&body.bytes)?;
    app.check_model(asked.model.as_deref())?;
    let ignored = std::mem::take(&mut asked.ignored);
    let stream = asked.generation.stream;
    let names = app.reply_names("cmpl", asked.generation.seed);
    let terms = Terms::of(&asked.generation, None);
    let submitted = app.submit(body.received, terms, move |text, limits| {
        let built = completion_request::build(&asked, names.seed, text, limits)?;
        let (prompts, work): (Vec<_>, Vec<_>) = built.into_iter().unzip();
        let shape = CompletionShape::new(names, &asked, &prompts, text)?;
        Ok((shape, work))
    });
    let (shape, reply) = submitted.await?;
    drop(body);
    sse::answer(&app, reply, shape, stream.is_some(), &ignored).await
}
