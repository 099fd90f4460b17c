//! One thin handler per file.

pub(crate) mod about;
pub(crate) mod chat;
pub(crate) mod completions;
pub(crate) mod console;
pub(crate) mod decide;
pub(crate) mod decisions;
pub(crate) mod docs;
pub(crate) mod health;
pub(crate) mod messages;
pub(crate) mod metrics;
pub(crate) mod models;
pub(crate) mod replay;
pub(crate) mod responses;
pub(crate) mod score;
pub(crate) mod systemone;
pub(crate) mod tokenize;
