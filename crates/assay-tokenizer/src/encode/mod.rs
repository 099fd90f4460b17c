//! From a stretch of plain text to token ids: the algorithms behind `tokenizer.ggml.model`.
//!
//! Special tokens are already cut out; what arrives here can only become ordinary tokens.

mod bpe;
mod merge;
mod sentencepiece;

pub(crate) use bpe::{Alphabet, Bpe, WholeWords};
pub(crate) use sentencepiece::{SentencePiece, mark_spaces};
