//! What readers ask of rows of logits that lie on a device, so that the rows need not come over: the normaliser, whether
//! all logits are finite, the best few, and the logits and ranks of named ids.
//!
//! Class: exact. The same results as `log_softmax` and `top_k` on the host, which are this op's reference.

pub mod cuda;

#[cfg(test)]
mod tests;
