//! Bytes to characters, one token at a time, with the source bytes of each character.
//!
//! Invalid sequences become U+FFFD by the maximal-subpart rule, as `String::from_utf8_lossy` does on
//! the whole. A sequence that may still become valid is held.

/// A character and how many bytes it came from (for U+FFFD of an invalid sequence: 1 to 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DecodedChar {
    pub(super) char: char,
    pub(super) num_bytes: usize,
}

/// Incremental decoder; holds at most 3 bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Utf8Decoder {
    held: Vec<u8>,
}

impl Utf8Decoder {
    /// Characters that became complete, or proved invalid, with `bytes`.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<DecodedChar> {
        self.held.extend_from_slice(bytes);
        let mut decoded = Vec::new();
        let mut rest = self.held.as_slice();
        loop {
            let (valid, invalid) = match std::str::from_utf8(rest) {
                Ok(valid) => (valid, None),
                Err(error) => (
                    std::str::from_utf8(&rest[..error.valid_up_to()])
                        .expect("the error says that this part is valid"),
                    error.error_len(),
                ),
            };
            decoded.extend(valid.chars().map(|char| DecodedChar {
                char,
                num_bytes: char.len_utf8(),
            }));
            rest = &rest[valid.len()..];
            let Some(num_bytes) = invalid else {
                break;
            };
            decoded.push(DecodedChar {
                char: char::REPLACEMENT_CHARACTER,
                num_bytes,
            });
            rest = &rest[num_bytes..];
        }
        self.held = rest.to_vec();
        decoded
    }

    /// Ends the text: an unfinished sequence proves invalid.
    pub(super) fn finish(&mut self) -> Option<DecodedChar> {
        let num_bytes = std::mem::take(&mut self.held).len();
        // What is held is one maximal subpart: the begin of a single character.
        (num_bytes > 0).then_some(DecodedChar {
            char: char::REPLACEMENT_CHARACTER,
            num_bytes,
        })
    }
}
