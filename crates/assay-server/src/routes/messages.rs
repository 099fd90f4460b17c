//! `POST /v1/messages` and `/v1/messages/count_tokens`.

use assay_api::anthropic::{MessagesRequest, TokenCount};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};

use crate::body::JsonBody;
use crate::convert::messages::MessagesShape;
use crate::convert::request::{self, Work};
use crate::error::ApiError;
use crate::places::TextWork;
use crate::state::{AppState, Terms};
use crate::{ignored, sse};

pub(crate) async fn create(
    State(app): State<AppState>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let mut asked = MessagesRequest::from_json(&body.bytes)?;
    app.check_model(asked.model.as_deref())?;
    let mut ignored = std::mem::take(&mut asked.ignored);
    app.text()
        .settle_tools(&mut asked.conversation, &mut ignored)?;
    let stream = asked.generation.stream;
    let mut names = app.reply_names("msg", asked.generation.seed);
    names.id = names.id.replacen('-', "_", 1);
    let terms = Terms::of(&asked.generation, Some(&asked.conversation.tools));
    let submitted = app.submit(body.received, terms, move |text, limits| {
        let request = request::chat(
            &asked.conversation,
            &asked.generation,
            "messages",
            names.seed,
            text,
            limits,
        )?;
        let shape = MessagesShape::new(names, &asked, &request);
        Ok((shape, vec![Work::Engine(Box::new(request))]))
    });
    let (shape, reply) = submitted.await?;
    drop(body);
    sse::answer(&app, reply, shape, stream.is_some(), &ignored).await
}

pub(crate) async fn count_tokens(
    State(app): State<AppState>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let mut asked = MessagesRequest::to_count(&body.bytes)?;
    app.check_model(asked.model.as_deref())?;
    let mut unknown = std::mem::take(&mut asked.ignored);
    app.text()
        .settle_tools(&mut asked.conversation, &mut unknown)?;
    let count = app.with_text(TextWork::Words, move |text, limits| {
        let prompt = text.chat_prompt(&asked.conversation, "messages", limits.room)?;
        Ok(TokenCount {
            input_tokens: prompt.token_ids.len(),
        })
    });
    let mut response = Json(count.await?).into_response();
    drop(body);
    ignored::list(&unknown, &mut response);
    Ok(response)
}
