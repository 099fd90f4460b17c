//! Constrained generation: from a JSON Schema, a regular expression, a choice or a grammar to the tokens
//! that may come next.
//!
//! A [`ConstraintFactory`] belongs to one vocabulary and compiles them into [`Constraint`]s; a
//! [`Matcher`] follows one reply through a constraint. Whatever cannot be enforced in full is refused
//! when it is compiled. Knows no logits, no requests, and no text but the tokens' bytes.
#![forbid(unsafe_code)]

mod cache;
mod compiler;
mod definition;
mod error;
mod factory;
mod mask;
mod matcher;
mod overtime;
mod schema;
mod source;
mod vocabulary;

pub use error::{ConstraintError, MatchError};
pub use factory::{Constraint, ConstraintFactory};
pub use mask::TokenMask;
pub use matcher::Matcher;
pub use source::Shape;
