//! The OpenAI shapes: chat completions and the list of models.

pub mod chat;
pub mod logprobs;
pub mod message;
pub mod models;
pub mod refused;
pub mod request;
pub mod response_format;
pub mod tools;
pub mod usage;

pub use chat::{
    AssistantMessage, ChatChoice, ChatChunk, ChatCompletion, ChunkChoice, Delta, FinishReason,
    Role as ReplyRole,
};
pub use logprobs::{Alternative, ChoiceLogprobs, LogprobEntry};
pub use message::{ChatMessage, Content, Role};
pub use models::{Model, ModelList};
pub use request::{ChatCompletionRequest, ChatLogprobs, LogprobsMode, StreamOptions};
pub use response_format::ResponseFormat;
pub use tools::ToolChoice;
pub use usage::{CompletionTokensDetails, PromptTokensDetails, Usage};
