//! Tokenizer from a GGUF's own vocabulary, chat templates, and a detokenizer that never loses or
//! invents a byte. Knows no models.
#![forbid(unsafe_code)]
