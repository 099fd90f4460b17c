//! `POST /v1/responses`, stateless.

use assay_api::openai::responses_request::ResponsesRequest;
use axum::extract::State;
use axum::response::Response;

use crate::body::JsonBody;
use crate::convert::request::{self, Work};
use crate::convert::responses::ResponsesShape;
use crate::error::ApiError;
use crate::sse;
use crate::state::{AppState, Terms};

pub(crate) async fn create(
    State(app): State<AppState>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let mut asked = ResponsesRequest::from_json(&body.bytes)?;
    app.check_model(asked.model.as_deref())?;
    let mut ignored = std::mem::take(&mut asked.ignored);
    app.text()
        .settle_tools(&mut asked.conversation, &mut ignored)?;
    let stream = asked.generation.stream;
    let names = app.reply_names("resp", asked.generation.seed);
    let terms = Terms::of(&asked.generation, Some(&asked.conversation.tools));
    let submitted = app.submit(body.received, terms, move |text, limits| {
        let request = request::chat(
            &asked.conversation,
            &asked.generation,
            "input",
            names.seed,
            text,
            limits,
        )?;
        let shape = ResponsesShape::new(names, &asked, &request, text);
        Ok((shape, vec![Work::Engine(Box::new(request))]))
    });
    let (shape, reply) = submitted.await?;
    drop(body);
    sse::answer(&app, reply, shape, stream.is_some(), &ignored).await
}
