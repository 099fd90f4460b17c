//! Decisions in the System One shape.

use std::sync::Arc;

use assay_api::decisions::systemone::{Answer, Ordered, SystemOneRequest, SystemOneResponse};

use super::plan::{Ask, Outcome};
use super::prompt::PROMPT_FORMAT;
use super::usage::Counts;
use super::wording::state_text;
use crate::convert::reply_shape::ReplyNames;

/// The questions in their place.
pub(crate) fn asks(request: &SystemOneRequest) -> Vec<Ask> {
    let state: Arc<str> = state_text(&request.state).into();
    let questions = request.questions.iter();
    let asks = questions.map(|named| Ask::of(&state, &named.question));
    asks.collect()
}

/// The reply, its receipt aside.
pub(crate) fn reply(
    request: &SystemOneRequest,
    outcomes: Vec<Outcome>,
    counts: Counts,
    names: ReplyNames,
) -> SystemOneResponse {
    let pairs = request.questions.iter().zip(outcomes);
    let answers =
        pairs.map(|(named, outcome)| (named.id.clone(), Answer::new(named, outcome.reading)));
    SystemOneResponse {
        model: names.model,
        answers: Ordered(answers.collect()),
        usage: counts.system_one(),
        x_id: names.id,
        x_system_fingerprint: names.system_fingerprint,
        x_prompt_format: PROMPT_FORMAT.to_owned(),
        x_receipt: None,
    }
}
