//! A schema filled in field by field: the chain rule in declared order, each field asked below the answers before it.

pub(crate) mod beam;
pub(crate) mod search;
mod subset;
