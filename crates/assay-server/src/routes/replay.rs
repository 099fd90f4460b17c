//! `POST /v1/replay`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use assay_api::FieldError;
use assay_api::replay::{ReplayRequest, ReplayVerdict};
use assay_engine::SubmitError;
use assay_receipt::{Difference, Receipt, Replay, ReplayError, Replayed, SealError, open};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};

use crate::body::JsonBody;
use crate::error::ApiError;
use crate::ignored;
use crate::model_text::ModelText;
use crate::places::TextWork;
use crate::state::AppState;

pub(crate) async fn create(
    State(app): State<AppState>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let asked = ReplayRequest::from_json(&body.bytes)?;
    let Some(_running) = app.lifecycle().begin() else {
        app.metrics().count_refused();
        return Err(ApiError::Draining);
    };
    let deadline = app.deadline(body.received);
    drop(body);
    let replaying = app.clone();
    let receipt = asked.receipt.to_string();
    // Past the deadline, or without its client, the replay ends before its next output.
    let awaited = Awaited::default();
    let is_abandoned = Arc::clone(&awaited.is_over);
    let verdict = app.with_text(TextWork::Replay, move |text, _| {
        judge(receipt.as_bytes(), &replaying, text, &is_abandoned)
    });
    let verdict = deadline.bound(verdict).await??;
    let mut response = Json(verdict).into_response();
    ignored::list(&asked.ignored, &mut response);
    Ok(response)
}

/// Lives as long as somebody waits for the verdict.
#[derive(Default)]
struct Awaited {
    is_over: Arc<AtomicBool>,
}

impl Drop for Awaited {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// What comes of the receipt in `sealed`, taken for hostile: its hashes are checked before anything of it is used.
fn judge(
    sealed: &[u8],
    app: &AppState,
    text: &ModelText,
    is_abandoned: &AtomicBool,
) -> Result<ReplayVerdict, ApiError> {
    let receipt = match open(sealed) {
        Ok(receipt) => receipt,
        Err(error @ SealError::Altered { .. }) => return Ok(broken("receipt_sha256", error)),
        Err(error @ SealError::NotAReceipt(_)) => return Ok(broken("receipt", error)),
        Err(error @ (SealError::TooLarge { .. } | SealError::OtherFormat { .. })) => {
            return Err(unusable(&error));
        }
    };
    match computed_again(&receipt, app, text, is_abandoned) {
        Ok(replayed) => Ok(ReplayVerdict::Identical {
            outputs: replayed.num_outputs,
            values: replayed.num_values,
            drawn: replayed.num_drawn,
            distributions: replayed.num_distributions,
        }),
        Err(ReplayError::Different(Difference {
            place,
            recorded,
            found,
        })) => Ok(ReplayVerdict::Different {
            place,
            recorded,
            found,
        }),
        Err(ReplayError::Impossible { place, reason }) => {
            Ok(ReplayVerdict::Broken { place, reason })
        }
        Err(ReplayError::Engine(error @ SubmitError::TooLong { .. })) => Err(unusable(&error)),
        Err(ReplayError::Engine(error)) => Err(app.not_taken(error)),
        // Nobody reads it.
        Err(ReplayError::Abandoned) => Err(ApiError::Draining),
        Err(ReplayError::Failed(error)) => Err(app.cause(error.into())),
    }
}

fn computed_again(
    receipt: &Receipt,
    app: &AppState,
    text: &ModelText,
    is_abandoned: &AtomicBool,
) -> Result<Replayed, ReplayError> {
    Replay::check_identity(receipt, app.identity())?;
    let replay = Replay {
        receipt,
        engine: app.engine(),
        constraints: &|| text.fresh_constraints(),
        is_abandoned: &|| is_abandoned.load(Ordering::Relaxed),
    };
    replay.run()
}

fn broken(place: &str, error: SealError) -> ReplayVerdict {
    ReplayVerdict::Broken {
        place: place.to_owned(),
        reason: error.to_string(),
    }
}

/// A receipt of which nothing can be said here.
fn unusable(error: &dyn std::error::Error) -> ApiError {
    FieldError::new("receipt", format!("`receipt`: {error}")).into()
}
