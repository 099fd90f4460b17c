//! The engine: requests in, token outputs with their scores out.
//!
//! Synchronous, on its own thread; knows no HTTP, no serialisation, no async. `step.rs` lists the
//! stages of one step in order; each works on plain values of the one before.
//!
//! A caller spawns an [`Engine`], submits [`Request`]s through its [`EngineHandle`], and gets
//! [`OutputEvent`]s on the sink that it handed in.
#![forbid(unsafe_code)]

mod advance;
pub mod batch;
pub mod block_manager;
mod choice;
pub mod decision;
mod draw;
pub mod engine;
mod engine_core;
mod guide;
pub mod handle;
mod kept_rows;
pub mod logprobs;
pub mod observer;
pub mod output;
mod prefill;
pub mod prefix_tree;
pub mod request;
mod row_cache;
mod row_cost;
mod rows;
pub mod sampler;
pub mod scheduler;
pub mod sequence;
mod shared_prompts;
mod speculation;
pub mod stats;
mod step;
pub mod token_bytes;

pub use block_manager::PrefixCache;
pub use engine::{Engine, EngineConfig, SpawnError};
pub use handle::{EngineHandle, EngineState, SubmitError};
pub use observer::StepObserver;
pub use output::{
    Channel, Entry, FinishReason, Gone, NamedLogprobs, OutputEvent, OutputSink, PromptToken,
    Pushed, ReasoningFormat, ReasoningTags, ReplyFormat, RequestError, TextEnd, TextPipeline,
    TokenLogprobs, TokenOutput, ToolCallFormat, ToolCallPiece, TopLogprob, Usage,
};
pub use prefix_tree::CacheSalt;
pub use request::{
    InvalidRequest, LogprobsMode, LogprobsParams, MAX_NAMED_TOKENS, PromptLogprobsParams, Request,
    RequestId, SamplingParams,
};
pub use speculation::{DraftEffort, DraftModel, Speculation};
pub use stats::EngineStats;
pub use token_bytes::TokenBytes;
