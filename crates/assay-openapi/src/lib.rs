//! The OpenAPI 3.1 document of the server, made of the code that it describes.
//!
//! Requests: every reader of `assay-api` runs over bodies that lead it everywhere, and notes which fields it asks for,
//! of which type and in which range; probing tells what is required, which objects are closed, and whether the
//! defaults named in `words/` are true. Replies: the types' own schemas. By hand are the meanings of request fields
//! (`words/`) and the list of routes (`operations.rs`), which the server's tests compare with its router.
#![forbid(unsafe_code)]

mod document;
mod errors;
mod markdown;
mod operations;
mod path;
mod probe;
mod request;
mod request_schema;
mod samples;
mod shape;
#[cfg(test)]
mod tests;
mod words;

pub use document::{OpenApi, document};
pub use operations::{Operation, operations};
pub use request::{Request, Sample};
pub use samples::requests;
