//! Wire types only: what clients send and what they get back, in the OpenAI and Anthropic shapes and a few of our own.
//!
//! A leaf: it knows no engine, no model and no transport. Requests are read strictly (no coercion, every
//! number in its range, each fault naming its field); replies are plain serialisable structs.
#![forbid(unsafe_code)]

pub mod about;
pub mod anthropic;
pub mod decisions;
pub mod error;
pub mod fields;
pub mod json;
pub mod openai;
pub mod record;
pub mod replay;
pub mod score;
pub mod spelled;
pub mod tokenize;

pub use error::{ErrorBody, ErrorObject, FieldError};
