//! `POST /v1/chat/completions`.

use assay_api::openai::ChatCompletionRequest;
use axum::extract::State;
use axum::response::Response;

use crate::body::JsonBody;
use crate::convert::chat::ChatShape;
use crate::convert::request::{self, Work};
use crate::error::ApiError;
use crate::sse;
use crate::state::{AppState, Terms};

pub(crate) async fn create(
    State(app): State<AppState>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let mut chat = ChatCompletionRequest::from_json(&body.bytes)?;
    app.check_model(chat.model.as_deref())?;
    let mut ignored = std::mem::take(&mut chat.ignored);
    app.text()
        .settle_tools(&mut chat.conversation, &mut ignored)?;
    let stream = chat.generation.stream;
    let names = app.reply_names("chatcmpl", chat.generation.seed);
    let terms = Terms::of(&chat.generation, Some(&chat.conversation.tools));
    let submitted = app.submit(body.received, terms, move |text, limits| {
        let request = request::chat(
            &chat.conversation,
            &chat.generation,
            "messages",
            names.seed,
            text,
            limits,
        )?;
        let shape = ChatShape::new(names, &chat, &request, text);
        Ok((shape, vec![Work::Engine(Box::new(request))]))
    });
    let (shape, reply) = submitted.await?;
    drop(body);
    sse::answer(&app, reply, shape, stream.is_some(), &ignored).await
}
