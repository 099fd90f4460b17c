//! `POST /tokenize`, `/detokenize`, `/apply-template` and `GET /tokenizer_info`: the model's words without the model.

use assay_api::tokenize::{
    DetokenizeRequest, Detokenized, Piece, RenderedTemplate, TemplateRequest, TokenizeInput,
    TokenizeRequest, Tokenized, TokenizerInfo,
};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::body::JsonBody;
use crate::convert::request::no_token;
use crate::error::ApiError;
use crate::ignored;
use crate::model_text::ModelText;
use crate::places::TextWork;
use crate::state::AppState;

pub(crate) async fn tokenize(
    State(app): State<AppState>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let asked = TokenizeRequest::from_json(&body.bytes)?;
    app.check_model(asked.model.as_deref())?;
    let max_model_len = app.context_length();
    let (unknown, tokenized) = app
        .with_text(TextWork::Words, move |text, _| {
            let token_ids = token_ids(&asked.input, text)?;
            Ok((
                asked.ignored,
                list(token_ids, asked.with_pieces, max_model_len, text),
            ))
        })
        .await?;
    drop(body);
    Ok(answer(tokenized, &unknown))
}

pub(crate) async fn detokenize(
    State(app): State<AppState>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let asked = DetokenizeRequest::from_json(&body.bytes)?;
    app.check_model(asked.model.as_deref())?;
    let (unknown, detokenized) = app
        .with_text(TextWork::Words, move |text, limits| {
            if let Some(&id) = asked.tokens.iter().find(|id| **id >= limits.vocab_size) {
                return Err(no_token("tokens", "tokens", id, limits.vocab_size));
            }
            let bytes = text.decode(&asked.tokens);
            let prompt = String::from_utf8_lossy(&bytes).into_owned();
            Ok((asked.ignored, Detokenized { prompt, bytes }))
        })
        .await?;
    drop(body);
    Ok(answer(detokenized, &unknown))
}

pub(crate) async fn apply_template(
    State(app): State<AppState>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let asked = TemplateRequest::from_json(&body.bytes)?;
    app.check_model(asked.model.as_deref())?;
    let (unknown, rendered) = app
        .with_text(TextWork::Words, move |text, _| {
            let prompt = text.render(&asked.conversation, asked.add_generation_prompt)?;
            let prompt = text.readable(&prompt);
            Ok((asked.ignored, RenderedTemplate { prompt }))
        })
        .await?;
    drop(body);
    Ok(answer(rendered, &unknown))
}

pub(crate) async fn info(State(app): State<AppState>) -> Json<TokenizerInfo> {
    Json(app.text().tokenizer_info(app.context_length()))
}

fn token_ids(input: &TokenizeInput, text: &ModelText) -> Result<Vec<u32>, ApiError> {
    match input {
        TokenizeInput::Text {
            prompt,
            add_special_tokens,
        } => text.encode(prompt, *add_special_tokens),
        TokenizeInput::Conversation(asked) => {
            let prompt = text.render(&asked.conversation, asked.add_generation_prompt)?;
            text.encode_rendered(&prompt)
        }
    }
}

fn list(token_ids: Vec<u32>, with_pieces: bool, max_model_len: u32, text: &ModelText) -> Tokenized {
    let pieces = with_pieces.then(|| {
        let pieces = token_ids.iter().map(|&id| {
            let (token, bytes) = text.spell(id);
            Piece { id, token, bytes }
        });
        pieces.collect::<Vec<_>>()
    });
    let token_strs = pieces
        .as_ref()
        .map(|pieces| pieces.iter().map(|piece| piece.token.clone()).collect());
    Tokenized {
        count: token_ids.len(),
        max_model_len,
        tokens: token_ids,
        token_strs,
        pieces,
    }
}

fn answer(body: impl Serialize, unknown: &[String]) -> Response {
    let mut response = Json(body).into_response();
    ignored::list(unknown, &mut response);
    response
}
