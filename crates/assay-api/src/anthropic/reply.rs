//! Replies of `POST /v1/messages`: one message, or the events of one in the making.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// A reply, whole or as it begins.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Message {
    /// Name of the reply.
    pub id: String,
    /// Always `message`.
    #[schemars(extend("const" = "message"))]
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Always `assistant`.
    #[schemars(extend("const" = "assistant"))]
    pub role: &'static str,
    /// The model that answered.
    pub model: String,
    /// What it said, in order.
    pub content: Vec<Block>,
    /// Why it ended; null before.
    pub stop_reason: Option<StopReason>,
    /// The stop sequence that ended it, if one did.
    pub stop_sequence: Option<String>,
    /// Token counts.
    pub usage: MessagesUsage,
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schemars(rename = "MessageBlock")]
pub enum Block {
    /// Text.
    Text {
        /// It.
        text: String,
        /// Always null.
        #[schemars(with = "()")]
        citations: Option<Value>,
    },
    /// What the model thought.
    Thinking {
        /// It.
        thinking: String,
        /// Always empty: thoughts that come back are not checked.
        signature: String,
    },
    /// A call of a tool.
    ToolUse {
        /// Its name in the conversation.
        id: String,
        /// The tool's name.
        name: String,
        /// Its arguments; as text where what the model wrote is no JSON object.
        input: Value,
    },
}

/// Why a reply ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "MessageStopReason")]
pub enum StopReason {
    /// The model ended it.
    EndTurn,
    /// `max_tokens`.
    MaxTokens,
    /// One of `stop_sequences`.
    StopSequence,
    /// The model ended it after calls of tools.
    ToolUse,
}

/// Token counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MessagesUsage {
    /// Tokens of the prompt that were computed.
    pub input_tokens: u64,
    /// Always 0: what a cache learns is not counted apart.
    pub cache_creation_input_tokens: u64,
    /// Tokens of the prompt that came from the prefix cache.
    pub cache_read_input_tokens: u64,
    /// Generated tokens, thoughts and the ending one included.
    pub output_tokens: u64,
}

/// Reply of `POST /v1/messages/count_tokens`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TokenCount {
    /// Tokens of the prompt.
    pub input_tokens: usize,
}

/// One event of a stream.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum MessageEvent {
    /// The message, empty.
    MessageStart {
        /// It.
        message: Box<Message>,
    },
    /// A block begins.
    ContentBlockStart {
        /// Its index.
        index: usize,
        /// It, empty.
        content_block: Block,
    },
    /// A block goes on.
    ContentBlockDelta {
        /// Its index.
        index: usize,
        /// What to append.
        delta: BlockDelta,
    },
    /// A block is complete.
    ContentBlockStop {
        /// Its index.
        index: usize,
    },
    /// The message is complete.
    MessageDelta {
        /// How it ended.
        delta: MessageEnd,
        /// Token counts.
        usage: MessagesUsage,
    },
    /// Nothing follows.
    MessageStop,
}

impl MessageEvent {
    /// The event's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::MessageStart { .. } => "message_start",
            Self::ContentBlockStart { .. } => "content_block_start",
            Self::ContentBlockDelta { .. } => "content_block_delta",
            Self::ContentBlockStop { .. } => "content_block_stop",
            Self::MessageDelta { .. } => "message_delta",
            Self::MessageStop => "message_stop",
        }
    }
}

/// What to append to a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schemars(rename = "MessageBlockDelta")]
pub enum BlockDelta {
    /// Text.
    TextDelta {
        /// It.
        text: String,
    },
    /// Thoughts.
    ThinkingDelta {
        /// They.
        thinking: String,
    },
    /// JSON text of a call's arguments.
    InputJsonDelta {
        /// It.
        partial_json: String,
    },
}

/// How a message ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MessageEnd {
    /// Why.
    pub stop_reason: StopReason,
    /// The stop sequence that ended it, if one did.
    pub stop_sequence: Option<String>,
}
