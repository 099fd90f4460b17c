//! The engine: requests in, token outputs with their scores out.
//!
//! Synchronous, on its own thread; knows no HTTP, no serialisation, no async. `step.rs` lists the
//! stages of one step in order.
#![forbid(unsafe_code)]

pub mod output;
pub mod request;

pub use output::{
    Entry, FinishReason, Gone, OutputEvent, OutputSink, RequestError, TokenLogprobs, TokenOutput,
    TopLogprob, Usage,
};
pub use request::{LogprobsMode, LogprobsParams, Request, RequestId, SamplingParams};
