//! A vocabulary of single bytes and some pieces, and texts walked through a matcher.

use assay_constrain::{Constraint, ConstraintFactory, Matcher};
use assay_testkit::scripted::ScriptedVocab;

/// Pieces that straddle what a grammar tells apart: quotes, escapes, halves of characters.
const PIECES: [&[u8]; 12] = [
    b"{\"",
    b"\":",
    b"\",",
    b"\"}",
    b"\\\"",
    b"true",
    b"}}",
    b"  ",
    "ü".as_bytes(),
    b"\xc3",
    b"\xbc\"",
    b"null",
];

pub(crate) fn vocabulary() -> ScriptedVocab {
    ScriptedVocab::new(PIECES)
}

pub(crate) fn factory() -> ConstraintFactory {
    let vocabulary = vocabulary();
    let end = vocabulary.end_token_id();
    let tokens = (0..).zip(vocabulary.token_bytes()).map(|(id, bytes)| {
        let is_text = id != end;
        is_text.then(|| bytes.clone())
    });
    ConstraintFactory::from_token_bytes(tokens, &[end]).expect("the vocabulary has an end token")
}

/// How a text went through a constraint, spelt by `token_ids`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Walk {
    /// Every token was allowed, and the reply may end.
    Complete,
    /// Every token was allowed; more is needed.
    Unfinished,
    /// The token at this index was not in the mask.
    RefusedAt(usize),
}

/// Walks tokens through a fresh matcher; mask and `accept` have to agree at each.
pub(crate) fn walk(constraint: &Constraint, token_ids: &[u32]) -> Walk {
    let mut matcher = Matcher::new(constraint);
    for (index, &token_id) in token_ids.iter().enumerate() {
        let mask = matcher.compute_mask().expect("a mask");
        let accepted = matcher.accept(token_id);
        assert_eq!(
            mask.allows(token_id),
            accepted.is_ok(),
            "token {index} ({token_id}): the mask and accept disagree: {accepted:?}"
        );
        if accepted.is_err() {
            return Walk::RefusedAt(index);
        }
    }
    let mask = matcher.compute_mask().expect("a mask");
    let may_end = constraint.end_token_ids().iter().all(|&id| mask.allows(id));
    assert_eq!(
        may_end,
        matcher.is_accepting().expect("a state"),
        "end tokens and acceptance"
    );
    if may_end {
        Walk::Complete
    } else {
        Walk::Unfinished
    }
}
