//! What ends a label.

use assay_models::TokenId;
use assay_tokenizer::Tokenizer;

/// What comes behind an answer in the kind of prompt that asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// A chat model ends its turn: any of its end-of-generation tokens.
    Turn,
    /// A base model goes on with the next line: any token whose bytes begin with a newline.
    Line,
}

/// The set of tokens that end a label, ascending; empty where the vocabulary has none, and then no label can be read.
pub fn end_token_ids(tokenizer: &Tokenizer, ending: Ending) -> Vec<TokenId> {
    match ending {
        Ending::Turn => tokenizer.end_token_ids().to_vec(),
        Ending::Line => (0..u32::try_from(tokenizer.vocab_size()).expect("token ids are u32"))
            .filter(|&id| !tokenizer.is_special(id))
            .filter(|&id| {
                let bytes = tokenizer.token_bytes(id);
                bytes.is_some_and(|bytes| bytes.starts_with(b"\n"))
            })
            .collect(),
    }
}
