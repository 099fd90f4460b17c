//! Tokenizer from a GGUF's own vocabulary, chat templates, and a detokenizer that never loses or
//! invents a byte.
//!
//! In: a file's metadata. Out: token ids for text, bytes for token ids, prompts for messages.
//! Knows no models, no requests and no files; a definition it does not know exactly is refused.
#![forbid(unsafe_code)]

mod byte_level;
mod chat_template;
mod detokenizer;
mod encode;
mod end_tokens;
mod error;
mod fingerprint;
mod literal_text;
mod pre_tokenizer;
mod special_text;
mod texts;
mod tokenizer;
mod vocab;

pub use chat_template::{
    ChatTemplate, GenerationPrompt, InvalidDate, ReasoningParser, RenderOptions, TemplateDate,
    TemplateError, TemplateLimits, TemplateTokens, ToolParser, UnknownParser,
};
pub use detokenizer::{Detokenizer, display_token};
pub use error::TokenizerError;
pub use tokenizer::{EncodeOptions, SpecialText, SpecialTokens, Tokenizer};
pub use vocab::TokenKind;
