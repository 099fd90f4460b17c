//! Bytes to text, a token at a time, losing and inventing nothing.
//!
//! A character split over tokens is held until its last byte arrives; bytes that can no longer become a
//! character are U+FFFD, one per maximal subpart (Unicode 16, §3.9, table 3-8), as soon as that is proved.

use std::str;

/// Decodes a stream of bytes.
///
/// The texts of all pushes join to the UTF-8 decoding of all bytes but the tail that [`finish`] returns.
///
/// [`finish`]: Detokenizer::finish
#[derive(Debug, Clone, Default)]
pub struct Detokenizer {
    /// The beginning of a character, at most three bytes.
    held: Vec<u8>,
}

impl Detokenizer {
    /// A decoder that holds nothing.
    #[must_use]
    pub fn new() -> Detokenizer {
        Detokenizer::default()
    }

    /// Takes the next bytes and returns the text that became complete with them.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.held.extend_from_slice(bytes);
        let mut text = String::with_capacity(self.held.len());
        let mut rest = self.held.as_slice();
        loop {
            let error = match str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    rest = &[];
                    break;
                }
                Err(error) => error,
            };
            let (valid, after) = rest.split_at(error.valid_up_to());
            text.push_str(
                str::from_utf8(valid).expect("the error says that these bytes are valid"),
            );
            rest = after;
            let Some(invalid) = error.error_len() else {
                break;
            };
            text.push(char::REPLACEMENT_CHARACTER);
            rest = rest.get(invalid..).unwrap_or_default();
        }
        let done = self.held.len() - rest.len();
        self.held.drain(..done);
        text
    }

    /// The bytes of a character that has begun and is not complete.
    #[must_use]
    pub fn held(&self) -> &[u8] {
        &self.held
    }

    /// Ends the stream and returns the bytes that never became a character; text ends before them.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.held
    }
}

/// A token's bytes as text for display: the text itself, or `bytes:\xHH…` if it is not valid alone.
#[must_use]
pub fn display_token(bytes: &[u8]) -> String {
    match str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => {
            let escapes = bytes.iter().map(|byte| format!("\\x{byte:02x}"));
            escapes.fold("bytes:".to_owned(), |text, escape| text + &escape)
        }
    }
}
