//! The words that the architectures are written in: projections, norms, attention, feed-forward, head.
//!
//! A layer knows its weights and its op order; it knows no architecture and no batch policy.

pub(crate) mod attention;
pub(crate) mod embedding;
pub(crate) mod linear;
pub(crate) mod lm_head;
pub(crate) mod matrix;
pub(crate) mod mlp;
pub(crate) mod norm;
