//! Decisions in the OpenAI shape.

use std::sync::Arc;

use assay_api::decisions::openai::{
    Answer, Decision, DecisionRequest, DecisionUsage, InputTokensDetails, OutputTokensDetails,
};
use assay_engine::decision::DecisionReading;

use super::plan::{Ask, Outcome};
use super::prompt::PROMPT_FORMAT;
use super::wording::state_text;
use crate::convert::reply_shape::ReplyNames;

/// The questions in their place.
pub(crate) fn asks(request: &DecisionRequest) -> Vec<Ask> {
    let state: Arc<str> = state_text(&request.state).into();
    let questions = request.questions.iter();
    let asks = questions.map(|(_, question)| Ask::of(&state, question));
    asks.collect()
}

/// The reply.
pub(crate) fn reply(
    request: DecisionRequest,
    outcomes: Vec<Outcome>,
    read: &DecisionReading,
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
        usage: usage(read),
        system_fingerprint: names.system_fingerprint,
        prompt_format: PROMPT_FORMAT.to_owned(),
    }
}

/// Token counts of one reading.
pub(crate) fn usage(read: &DecisionReading) -> DecisionUsage {
    let (input_tokens, output_tokens) = (u64::from(read.prompt_tokens), u64::from(read.trie_edges));
    DecisionUsage {
        input_tokens,
        input_tokens_details: InputTokensDetails {
            cache_write_tokens: 0,
            cached_tokens: u64::from(read.cached_tokens),
        },
        output_tokens,
        output_tokens_details: OutputTokensDetails::default(),
        total_tokens: input_tokens + output_tokens,
    }
}
