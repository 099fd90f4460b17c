//! Decisions in the OpenAI shape.

use std::sync::Arc;

use assay_api::decisions::openai::{Answer, Decision, DecisionRequest};

use super::plan::{Ask, Outcome};
use super::prompt::PROMPT_FORMAT;
use super::usage::Counts;
use super::wording::state_text;
use crate::convert::reply_shape::ReplyNames;

/// The questions in their place.
pub(crate) fn asks(request: &DecisionRequest) -> Vec<Ask> {
    let state: Arc<str> = state_text(&request.state).into();
    let questions = request.questions.iter();
    let asks = questions.map(|(_, question)| Ask::of(&state, question));
    asks.collect()
}

/// The reply, its receipt aside.
pub(crate) fn reply(
    request: DecisionRequest,
    outcomes: Vec<Outcome>,
    counts: Counts,
    names: ReplyNames,
) -> Decision {
    let pairs = request.questions.into_iter().zip(outcomes);
    let answers =
        pairs.map(|((name, question), outcome)| Answer::new(name, &question, outcome.reading));
    Decision {
        id: names.id,
        object: "decision".to_owned(),
        created: names.created,
        model: names.model,
        answers: answers.collect(),
        usage: counts.openai(),
        system_fingerprint: names.system_fingerprint,
        prompt_format: PROMPT_FORMAT.to_owned(),
        receipt: None,
    }
}
