//! Development only: tiny models, a scripted logits source, fixtures and check helpers.

pub mod scripted;
