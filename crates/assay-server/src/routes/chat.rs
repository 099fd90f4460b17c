//! `POST /v1/chat/completions`.

use assay_api::openai::ChatCompletionRequest;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};

use crate::body::JsonBody;
use crate::error::ApiError;
use crate::sse;
use crate::state::AppState;

pub(crate) const X_ASSAY_IGNORED: HeaderName = HeaderName::from_static("x-assay-ignored");

/// Longest list of ignored fields, in bytes; clients' header limits are not ours.
const MAX_IGNORED_BYTES: usize = 1_024;

pub(crate) async fn create(
    State(app): State<AppState>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let mut chat = ChatCompletionRequest::from_json(&body.bytes)?;
    app.check_model(chat.model.as_deref())?;
    app.text().settle_tools(&mut chat)?;
    let ignored = ignored_header(&chat.ignored);
    let stream = chat.stream;
    let reply = app.submit(chat).await?;
    drop(body);
    let mut response = match stream {
        Some(_) => sse::respond(reply, app.config().limits.keep_alive),
        None => Json(reply.collect().await?).into_response(),
    };
    if let Some(ignored) = ignored {
        response.headers_mut().insert(X_ASSAY_IGNORED, ignored);
    }
    Ok(response)
}

/// The list, with everything but plain letters replaced, as the names are client text.
fn ignored_header(ignored: &[String]) -> Option<HeaderValue> {
    let mut list = String::new();
    for path in ignored {
        if list.len() + path.len() > MAX_IGNORED_BYTES {
            list.push_str(if list.is_empty() { "..." } else { ", ..." });
            break;
        }
        if !list.is_empty() {
            list.push_str(", ");
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-.[]".contains(c);
        list.extend(path.chars().map(|c| if plain(c) { c } else { '?' }));
    }
    let list = (!list.is_empty()).then_some(list)?;
    Some(HeaderValue::from_str(&list).expect("only plain letters were kept"))
}
