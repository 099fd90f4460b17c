//! `POST /v1/responses`: its reply, whole or as the events of a stream.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::logprobs::LogprobEntry;
use super::responses_request::EchoedFields;
use super::usage::Usage;

/// A reply, whole or as it stands.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Response {
    /// Name of the reply.
    pub id: String,
    /// Always `response`.
    #[schemars(extend("const" = "response"))]
    pub object: &'static str,
    /// Seconds since 1970.
    pub created_at: u64,
    /// How far it is.
    pub status: ResponseStatus,
    /// Always null: a failed request is an error, not a reply.
    #[schemars(with = "()")]
    pub error: Option<Value>,
    /// Why it is incomplete, if it is.
    pub incomplete_details: Option<IncompleteDetails>,
    /// What it repeats of the request.
    #[serde(flatten)]
    pub echoed: EchoedFields,
    /// The model that answered.
    pub model: String,
    /// Its items, once they are complete.
    pub output: Vec<OutputItem>,
    /// Always null: nothing is kept.
    #[schemars(with = "()")]
    pub previous_response_id: Option<String>,
    /// 0 to 2.
    pub temperature: f64,
    /// (0, 1].
    pub top_p: f64,
    /// Always `disabled`.
    #[schemars(extend("const" = "disabled"))]
    pub truncation: &'static str,
    /// Token counts, once they are known.
    pub usage: Option<ResponseUsage>,
    /// Weights, numerics and version in one short hash.
    pub system_fingerprint: String,
    /// The seed that was used, drawn where the request named none.
    pub seed: i64,
}

/// How far a reply or a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResponseStatus {
    /// Under way.
    InProgress,
    /// At its end.
    Completed,
    /// Cut by a limit.
    Incomplete,
}

/// Why a reply is incomplete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct IncompleteDetails {
    /// Always `max_output_tokens`.
    #[schemars(extend("const" = "max_output_tokens"))]
    pub reason: &'static str,
}

/// A part of a reply.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum OutputItem {
    /// What the model said.
    Message(OutputMessage),
    /// What it thought.
    Reasoning(OutputReasoning),
    /// A tool that it calls.
    FunctionCall(OutputCall),
}

/// What the model thought.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OutputReasoning {
    /// Name of the item.
    pub id: String,
    /// Always `reasoning`.
    #[schemars(extend("const" = "reasoning"))]
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// How far it is.
    pub status: ResponseStatus,
    /// Always empty: thoughts are told whole.
    pub summary: Vec<Value>,
    /// One part, once there is one.
    pub content: Vec<ReasoningText>,
}

/// Text of thoughts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReasoningText {
    /// Always `reasoning_text`.
    #[schemars(extend("const" = "reasoning_text"))]
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The text.
    pub text: String,
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OutputCall {
    /// Name of the item.
    pub id: String,
    /// Always `function_call`.
    #[schemars(extend("const" = "function_call"))]
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// How far it is.
    pub status: ResponseStatus,
    /// The call's name in the conversation.
    pub call_id: String,
    /// The tool's name.
    pub name: String,
    /// JSON text, as the model wrote it.
    pub arguments: String,
}

/// The model's message.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OutputMessage {
    /// Name of the message.
    pub id: String,
    /// Always `message`.
    #[schemars(extend("const" = "message"))]
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// How far it is.
    pub status: ResponseStatus,
    /// Always `assistant`.
    #[schemars(extend("const" = "assistant"))]
    pub role: &'static str,
    /// One part, once there is one.
    pub content: Vec<OutputText>,
}

/// Text of a message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct OutputText {
    /// Always `output_text`.
    #[schemars(extend("const" = "output_text"))]
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The text.
    pub text: String,
    /// Always empty.
    pub annotations: Vec<Value>,
    /// An entry for each token that spells the text; empty where the request did not ask.
    pub logprobs: Vec<LogprobEntry>,
}

/// Token counts in the words of this endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ResponseUsage {
    /// Tokens of the prompt.
    pub input_tokens: u64,
    /// Where they came from.
    pub input_tokens_details: super::usage::PromptTokensDetails,
    /// Generated tokens.
    pub output_tokens: u64,
    /// What they were.
    pub output_tokens_details: super::usage::CompletionTokensDetails,
    /// Sum of both.
    pub total_tokens: u64,
}

impl From<Usage> for ResponseUsage {
    fn from(usage: Usage) -> Self {
        Self {
            input_tokens: usage.prompt_tokens,
            input_tokens_details: usage.prompt_tokens_details,
            output_tokens: usage.completion_tokens,
            output_tokens_details: usage.completion_tokens_details,
            total_tokens: usage.total_tokens,
        }
    }
}

/// One event of a stream.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ResponseEvent {
    /// Name of the event.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Counts from 0.
    pub sequence_number: u64,
    /// What the event is about.
    #[serde(flatten)]
    pub body: EventBody,
}

/// What an event is about.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum EventBody {
    /// The reply as it stands.
    Response {
        /// It.
        response: Box<Response>,
    },
    /// An item as it stands.
    Item {
        /// Its index.
        output_index: usize,
        /// It.
        item: Box<OutputItem>,
    },
    /// A part of an item as it stands.
    Part {
        /// Name of the item.
        item_id: String,
        /// The item's index.
        output_index: usize,
        /// Always 0.
        content_index: u32,
        /// It.
        part: Box<OutputPart>,
    },
    /// Text to append.
    Delta {
        /// Name of the item.
        item_id: String,
        /// The item's index.
        output_index: usize,
        /// Always 0.
        content_index: u32,
        /// The text.
        delta: String,
        /// Entries that spell it; none of thoughts.
        #[serde(skip_serializing_if = "Option::is_none")]
        logprobs: Option<Vec<LogprobEntry>>,
    },
    /// The whole text.
    Text {
        /// Name of the item.
        item_id: String,
        /// The item's index.
        output_index: usize,
        /// Always 0.
        content_index: u32,
        /// The text.
        text: String,
        /// Entries that spell it; none of thoughts.
        #[serde(skip_serializing_if = "Option::is_none")]
        logprobs: Option<Vec<LogprobEntry>>,
    },
    /// Arguments of a call to append.
    ArgumentsDelta {
        /// Name of the item.
        item_id: String,
        /// The item's index.
        output_index: usize,
        /// JSON text.
        delta: String,
    },
    /// A call's whole arguments.
    Arguments {
        /// Name of the item.
        item_id: String,
        /// The item's index.
        output_index: usize,
        /// The tool's name.
        name: String,
        /// JSON text.
        arguments: String,
    },
}

/// A part of an item.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum OutputPart {
    /// Of a message.
    Text(OutputText),
    /// Of thoughts.
    Reasoning(ReasoningText),
}
