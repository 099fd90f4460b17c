//! Short codes that stand for labels, where a question is read by code instead of by the caller's words.

use std::collections::BTreeMap;

use assay_tokenizer::{EncodeOptions, SpecialText, SpecialTokens, Tokenizer};

/// In the order that codes are given out.
const CHARACTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/// Characters of a code at most: 46,656 codes.
const MAX_CHARACTERS: u32 = 3;

/// `count` distinct codes of the model's own vocabulary that all have equally many tokens: A–Z, then 0–9, while they
/// suffice; longer ones of the same characters beyond that. `None` where the vocabulary cannot tell so many apart, and
/// for none or more than 46,656.
pub fn code_labels(tokenizer: &Tokenizer, count: usize) -> Option<Vec<String>> {
    let encoding = EncodeOptions {
        add_special: SpecialTokens::Omit,
        parse_special: SpecialText::Literal,
    };
    if count == 0 {
        return None;
    }
    for num_characters in 1..=MAX_CHARACTERS {
        // No code's tokens begin another's where all have as many.
        let mut by_length: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        for code in codes(num_characters) {
            let num_tokens = tokenizer.encode(&code, encoding).ok()?.len();
            let alike = by_length.entry(num_tokens).or_default();
            alike.push(code);
            if alike.len() == count {
                return by_length.remove(&num_tokens);
            }
        }
    }
    None
}

/// All codes of so many characters, in order.
fn codes(num_characters: u32) -> impl Iterator<Item = String> {
    let characters: Vec<char> = CHARACTERS.chars().collect();
    let base = characters.len();
    (0..base.pow(num_characters)).map(move |number| {
        let digits = (0..num_characters).rev();
        digits
            .map(|digit| characters[number / base.pow(digit) % base])
            .collect()
    })
}
