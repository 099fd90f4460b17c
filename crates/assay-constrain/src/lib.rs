//! Constrained generation: from a JSON Schema to the tokens that may come next.
//!
//! A [`ConstraintFactory`] belongs to one vocabulary and compiles schemas into [`Constraint`]s; a
//! [`Matcher`] follows one reply through a constraint. Whatever cannot be enforced in full is refused
//! when it is compiled. Knows no logits, no requests, and no text but the tokens' bytes.
#![forbid(unsafe_code)]

mod cache;
mod compiler;
mod error;
mod factory;
mod mask;
mod matcher;
mod schema;
mod vocabulary;

pub use error::{ConstraintError, MatchError};
pub use factory::{Constraint, ConstraintFactory};
pub use mask::TokenMask;
pub use matcher::Matcher;
