//! The only place where wire types and engine types meet.

pub(crate) mod constraint;
pub(crate) mod logprob_entries;
pub(crate) mod request;
pub(crate) mod response;
