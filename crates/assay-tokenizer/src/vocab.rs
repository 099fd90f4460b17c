//! The token list: text, kind and bytes of every id, and the id of every text.
//!
//! Knows nothing of merging; it says what each token is, exactly once, at load.

use std::collections::HashMap;

use assay_formats::Metadata;

use crate::byte_level;
use crate::error::TokenizerError;
use crate::texts::Texts;

/// The word-boundary mark of SentencePiece vocabularies, written for a space.
pub(crate) const SPACE_MARK: &str = "\u{2581}";

/// Most tokens accepted: far above any real vocabulary, low enough that ids and sums of ids fit 32 bits.
const VOCAB_SIZE_MAX: usize = 1 << 24;

const TOKENS: &str = "tokenizer.ggml.tokens";
const TOKEN_TYPE: &str = "tokenizer.ggml.token_type";

/// What a token is for, as `tokenizer.ggml.token_type` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// A piece of text (1, or 0 for undefined).
    Normal,
    /// Stands for text the vocabulary cannot spell (2).
    Unknown,
    /// Structure, never text: beginnings, ends, roles (3).
    Control,
    /// An added piece that is matched whole before the text is split (4).
    UserDefined,
    /// A free place in the vocabulary (5).
    Unused,
    /// One byte, written `<0xHH>` (6).
    Byte,
}

impl TokenKind {
    fn from_number(id: u32, number: i32) -> Result<TokenKind, TokenizerError> {
        Ok(match number {
            0 | 1 => TokenKind::Normal,
            2 => TokenKind::Unknown,
            3 => TokenKind::Control,
            4 => TokenKind::UserDefined,
            5 => TokenKind::Unused,
            6 => TokenKind::Byte,
            found => return Err(TokenizerError::TokenType { id, found }),
        })
    }
}

/// How normal tokens spell bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// One letter for each byte ([`byte_level`]).
    ByteLevel,
    /// UTF-8 with [`SPACE_MARK`] for a space.
    SpaceMark,
}

/// Texts, kinds and bytes by id.
#[derive(Debug)]
pub(crate) struct Vocab {
    texts: Texts,
    kinds: Vec<TokenKind>,
    ids: HashMap<Box<str>, u32>,
    bytes: Vec<u8>,
    /// Where each token ends in `bytes`.
    bytes_ends: Vec<usize>,
    /// The longest text, in bytes.
    text_bytes_max: usize,
}

impl Vocab {
    pub(crate) fn from_metadata(
        metadata: Metadata<'_>,
        spelling: Spelling,
    ) -> Result<Vocab, TokenizerError> {
        let texts = metadata
            .str_array(TOKENS)?
            .ok_or(TokenizerError::MissingKey { key: TOKENS })?;
        if texts.len() == 0 || texts.len() > VOCAB_SIZE_MAX {
            return Err(TokenizerError::VocabSize {
                found: texts.len(),
                max: VOCAB_SIZE_MAX,
            });
        }
        let kinds = read_kinds(metadata, texts.len())?;
        let texts = Texts::from_iter(texts);
        let ids = index_texts(&texts)?;
        let mut vocab = Vocab {
            text_bytes_max: texts.iter().map(str::len).max().unwrap_or(0),
            bytes: Vec::new(),
            bytes_ends: Vec::with_capacity(texts.len()),
            texts,
            kinds,
            ids,
        };
        for (id, text) in (0..).zip(vocab.texts.iter()) {
            match (vocab.kinds.get(id as usize), spelling) {
                (Some(TokenKind::Byte), _) => {
                    let byte = parse_byte_token(text).ok_or_else(|| TokenizerError::ByteToken {
                        id,
                        text: text.to_owned(),
                    })?;
                    vocab.bytes.push(byte);
                }
                (Some(TokenKind::Normal | TokenKind::Unused), Spelling::ByteLevel) => {
                    // Added tokens that a converter left "normal" are plain text.
                    match byte_level::decode(text) {
                        Some(bytes) => vocab.bytes.extend(bytes),
                        None => vocab.bytes.extend(text.bytes()),
                    }
                }
                (Some(TokenKind::Normal | TokenKind::Unused), Spelling::SpaceMark) => {
                    vocab.bytes.extend(text.replace(SPACE_MARK, " ").bytes());
                }
                _ => vocab.bytes.extend(text.bytes()),
            }
            vocab.bytes_ends.push(vocab.bytes.len());
        }
        Ok(vocab)
    }

    pub(crate) fn len(&self) -> usize {
        self.kinds.len()
    }

    pub(crate) fn text(&self, id: u32) -> Option<&str> {
        self.texts.get(id as usize)
    }

    pub(crate) fn kind(&self, id: u32) -> Option<TokenKind> {
        self.kinds.get(id as usize).copied()
    }

    pub(crate) fn set_kind(&mut self, id: u32, kind: TokenKind) {
        if let Some(place) = self.kinds.get_mut(id as usize) {
            *place = kind;
        }
    }

    /// The bytes that `id` adds to a reply.
    pub(crate) fn token_bytes(&self, id: u32) -> Option<&[u8]> {
        let end = *self.bytes_ends.get(id as usize)?;
        let start = match (id as usize).checked_sub(1) {
            Some(previous) => *self.bytes_ends.get(previous)?,
            None => 0,
        };
        self.bytes.get(start..end)
    }

    /// The id whose text in the file is `text`, whatever its kind.
    pub(crate) fn id(&self, text: &str) -> Option<u32> {
        if text.len() > self.text_bytes_max {
            return None;
        }
        self.ids.get(text).copied()
    }

    /// The id of `text` if plain text may become it: control, unknown and byte tokens are never spelled.
    pub(crate) fn spellable_id(&self, text: &str) -> Option<u32> {
        self.id(text).filter(|&id| {
            matches!(
                self.kind(id),
                Some(TokenKind::Normal | TokenKind::UserDefined | TokenKind::Unused)
            )
        })
    }

    /// The `<0xHH>` token of each byte.
    pub(crate) fn byte_tokens(&self) -> [Option<u32>; 256] {
        let mut tokens = [None; 256];
        for (id, &kind) in (0..).zip(&self.kinds) {
            if let (TokenKind::Byte, Some(&[byte])) = (kind, self.token_bytes(id)) {
                tokens[usize::from(byte)].get_or_insert(id);
            }
        }
        tokens
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &str, TokenKind)> {
        (0..)
            .zip(self.texts.iter())
            .zip(&self.kinds)
            .map(|((id, text), &kind)| (id, text, kind))
    }
}

fn read_kinds(metadata: Metadata<'_>, vocab_size: usize) -> Result<Vec<TokenKind>, TokenizerError> {
    let Some(numbers) = metadata.i32_array(TOKEN_TYPE)? else {
        return Ok(vec![TokenKind::Normal; vocab_size]);
    };
    if numbers.len() != vocab_size {
        return Err(TokenizerError::LengthMismatch {
            key: TOKEN_TYPE,
            expected: vocab_size,
            found: numbers.len(),
        });
    }
    (0..)
        .zip(numbers)
        .map(|(id, number)| TokenKind::from_number(id, number))
        .collect()
}

/// Empty texts get no entry: nothing can spell them, and some files have several.
fn index_texts(texts: &Texts) -> Result<HashMap<Box<str>, u32>, TokenizerError> {
    let mut ids = HashMap::with_capacity(texts.len());
    for (id, text) in (0..).zip(texts.iter()).filter(|(_, text)| !text.is_empty()) {
        if let Some(first) = ids.insert(Box::from(text), id) {
            return Err(TokenizerError::DuplicateToken {
                first,
                second: id,
                text: text.to_owned(),
            });
        }
    }
    Ok(ids)
}

/// Exactly `<0x`, two hexadecimal digits, `>`: no sign, no blank, no other length.
fn parse_byte_token(text: &str) -> Option<u8> {
    let digits = text.strip_prefix("<0x")?.strip_suffix('>')?;
    let is_byte = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_byte
        .then(|| u8::from_str_radix(digits, 16).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_tokens_are_parsed_strictly() {
        let cases = [
            ("<0x00>", Some(0)),
            ("<0xFF>", Some(255)),
            ("<0x0a>", Some(10)),
            ("<0x-1>", None),
            ("<0x+1>", None),
            ("<0x 1>", None),
            ("<0x1>", None),
            ("<0x100>", None),
            ("<0xGG>", None),
            ("<0X41>", None),
            ("<0x41", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_byte_token(text), expected, "{text:?}");
        }
    }
}
