//! The OpenAI shapes: chat completions, text completions and the list of models.

pub mod chat;
pub mod completion;
pub mod completion_request;
pub mod conversation;
pub mod generation;
pub mod logprobs;
pub mod message;
pub mod models;
pub mod prompt_logprobs;
pub mod reasoning;
pub mod refused;
pub mod request;
pub mod response_format;
pub mod responses;
pub mod responses_request;
pub mod tools;
pub mod usage;

pub use chat::{
    AssistantMessage, ChatChoice, ChatChunk, ChatCompletion, ChunkChoice, Delta, FinishReason,
    FunctionCall, FunctionDelta, Role as ReplyRole, ToolCall, ToolCallDelta,
};
pub use completion::{CompletionChoice, CompletionLogprobs, TextCompletion, TopLogprobs};
pub use completion_request::{CompletionRequest, Prompt};
pub use conversation::Conversation;
pub use generation::{GenerationParams, LogprobsMode, NamedTokens, ReplyLogprobs, StreamOptions};
pub use logprobs::{Alternative, ChoiceLogprobs, LogprobEntry};
pub use message::{ChatMessage, Content, MessageToolCall, Role};
pub use models::{Model, ModelCard, ModelList};
pub use prompt_logprobs::{PromptLogprob, PromptLogprobs, PromptPosition};
pub use reasoning::{ReasoningEffort, ReasoningParams};
pub use request::ChatCompletionRequest;
pub use response_format::{ReplyForm, ResponseFormat};
pub use tools::{Tool, ToolChoice, Tools};
pub use usage::{CompletionTokensDetails, PromptTokensDetails, Usage};
