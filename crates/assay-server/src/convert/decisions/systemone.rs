//! Decisions in the System One shape.

use std::sync::Arc;

use assay_api::decisions::systemone::{
    Answer, Ordered, SystemOneRequest, SystemOneResponse, SystemOneUsage,
};
use assay_engine::decision::DecisionReading;

use super::plan::{Ask, Outcome};
use super::prompt::PROMPT_FORMAT;
use super::wording::state_text;
use crate::convert::reply_shape::ReplyNames;

/// The questions in their place.
pub(crate) fn asks(request: &SystemOneRequest) -> Vec<Ask> {
    let state: Arc<str> = state_text(&request.state).into();
    let questions = request.questions.iter();
    let asks = questions.map(|named| Ask::of(&state, &named.question));
    asks.collect()
}

/// The reply.
pub(crate) fn reply(
    request: &SystemOneRequest,
    outcomes: Vec<Outcome>,
    read: &DecisionReading,
    names: ReplyNames,
) -> SystemOneResponse {
    let pairs = request.questions.iter().zip(outcomes);
    let answers =
        pairs.map(|(named, outcome)| (named.id.clone(), Answer::new(named, outcome.reading)));
    SystemOneResponse {
        model: names.model,
        answers: Ordered(answers.collect()),
        usage: SystemOneUsage {
            input_tokens: u64::from(read.prompt_tokens),
            output_tokens: u64::from(read.trie_edges),
            x_cached_tokens: u64::from(read.cached_tokens),
        },
        x_id: names.id,
        x_system_fingerprint: names.system_fingerprint,
        x_prompt_format: PROMPT_FORMAT.to_owned(),
    }
}
