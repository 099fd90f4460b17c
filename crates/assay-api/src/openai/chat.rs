//! Replies of `POST /v1/chat/completions`: one object, or a stream of chunks that add up to it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::generation::LogprobsMode;
use super::logprobs::ChoiceLogprobs;
use super::prompt_logprobs::PromptLogprobs;
use super::usage::Usage;

/// An unstreamed reply.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ChatCompletion {
    /// Name of the reply.
    pub id: String,
    /// Always `chat.completion`.
    #[schemars(extend("const" = "chat.completion"))]
    pub object: String,
    /// Seconds since 1970.
    pub created: u64,
    /// The model that answered.
    pub model: String,
    /// By ascending index.
    pub choices: Vec<ChatChoice>,
    /// Token counts.
    pub usage: Usage,
    /// Weights, numerics and version in one short hash.
    pub system_fingerprint: String,
    /// The seed that was used, drawn where the request named none.
    pub seed: i64,
    /// Where the scores were read; present where the request asked for scores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logprobs_mode: Option<LogprobsMode>,
    /// Scores of the prompt; present where the request asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_logprobs: Option<PromptLogprobs>,
}

/// One whole choice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChatChoice {
    /// Which choice.
    pub index: u32,
    /// What the model said.
    pub message: AssistantMessage,
    /// Its scores; null where the request did not ask.
    pub logprobs: Option<ChoiceLogprobs>,
    /// Why it ended.
    pub finish_reason: FinishReason,
    /// The stop string that ended it, if one did.
    pub stop_reason: Option<String>,
    /// Ids of the prompt; present where the request asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_token_ids: Option<Vec<u32>>,
    /// Ids of the tokens that spell visible text, each once; present where the request asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_ids: Option<Vec<u32>>,
}

/// The model's message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AssistantMessage {
    /// Always the assistant.
    pub role: Role,
    /// Its text; null where a reply that could hold more than text has none.
    pub content: Option<String>,
    /// Always null: refusals are not told apart from content.
    #[schemars(with = "()")]
    pub refusal: Option<String>,
    /// What it thought; present where it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    /// The tools that it calls; present where it does.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub tool_calls: Vec<ToolCall>,
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCall {
    /// Its name in the conversation.
    pub id: String,
    /// Always `function`.
    #[schemars(extend("const" = "function"))]
    #[serde(rename = "type")]
    pub kind: String,
    /// What is called.
    pub function: FunctionCall,
}

/// A function with its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionCall {
    /// The tool's name.
    pub name: String,
    /// JSON text, as the model wrote it.
    pub arguments: String,
}

/// Author of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "AssistantRole")]
pub enum Role {
    /// The model.
    Assistant,
}

/// Why a choice ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// An end token or a stop string.
    Stop,
    /// `max_tokens` or the end of the context.
    Length,
    /// An end token, after calls of tools.
    ToolCalls,
}

/// One chunk of a streamed reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChatChunk {
    /// Name of the reply, the same in all its chunks.
    pub id: String,
    /// Always `chat.completion.chunk`.
    #[schemars(extend("const" = "chat.completion.chunk"))]
    pub object: String,
    /// Seconds since 1970, the same in all chunks.
    pub created: u64,
    /// The model that answers.
    pub model: String,
    /// One choice, or none in the usage chunk.
    pub choices: Vec<ChunkChoice>,
    /// Present where the request asked: null, and the counts in the last chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Option<Usage>>,
    /// Weights, numerics and version in one short hash.
    pub system_fingerprint: String,
    /// The seed that is used, drawn where the request named none.
    pub seed: i64,
    /// Where the scores are read; present where the request asked for scores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logprobs_mode: Option<LogprobsMode>,
}

/// A piece of one choice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChunkChoice {
    /// Which choice.
    pub index: u32,
    /// What to append.
    pub delta: Delta,
    /// Entries that spell this delta; null where the request did not ask.
    pub logprobs: Option<ChoiceLogprobs>,
    /// Set in the choice's last chunk.
    pub finish_reason: Option<FinishReason>,
    /// The stop string that ended the choice, in its last chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// Ids of the prompt, in the choice's first chunk; present where the request asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_token_ids: Option<Vec<u32>>,
    /// Ids of this delta's tokens; present where the request asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_ids: Option<Vec<u32>>,
}

/// What a chunk appends to a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Delta {
    /// In the first chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Text to append.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// Thoughts to append.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    /// Pieces of tool calls.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub tool_calls: Vec<ToolCallDelta>,
}

/// A piece of a tool call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCallDelta {
    /// Which call of the choice.
    pub index: u32,
    /// In the call's first piece.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// In the call's first piece; always `function`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// What is called.
    pub function: FunctionDelta,
}

/// A piece of a function call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionDelta {
    /// In the call's first piece.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// JSON text to append.
    pub arguments: String,
}
