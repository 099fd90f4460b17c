//! The requests with bodies that lead their readers everywhere. What stands in the document comes first.

mod chat;
mod completions;
mod decisions;
mod messages;
mod responses;
mod tokens;

use crate::request::Request;

/// All requests.
pub fn requests() -> Vec<Request> {
    vec![
        chat::request(),
        completions::request(),
        responses::request(),
        messages::request(),
        messages::count_request(),
        completions::score_request(),
        decisions::decisions_request(),
        decisions::decide_request(),
        decisions::systemone_request(),
        decisions::replay_request(),
        tokens::tokenize_request(),
        tokens::detokenize_request(),
        tokens::template_request(),
    ]
}

/// Reads by `TYPE::METHOD`.
macro_rules! reader {
    ($read:path) => {
        |body| {
            $read(body).map(|request| crate::request::Read {
                shown: format!("{request:?}"),
                ignored: request.ignored,
            })
        }
    };
}
use reader;
