//! Engine events to the Anthropic shape: one message of blocks, or the events of one in the making.

use assay_api::anthropic::{
    Block, BlockDelta, Message, MessageEnd, MessageEvent, MessagesError, MessagesRequest,
    MessagesUsage, StopReason,
};
use assay_api::openai::{ToolCallDelta, Usage};
use assay_engine::{self as engine, Channel, Entry, OutputEvent};
use serde_json::{Map, Value};

use super::reply_shape::{ReplyNames, ReplyShape, StreamEnd};
use super::tool_calls::{ToolCallReader, argument_schemas};
use crate::error::ApiError;
use crate::reply::PromptEvent;

/// The reply of one request as it stands.
#[derive(Debug)]
pub(crate) struct MessagesShape {
    message: Message,
    calls: ToolCallReader,
    /// Whether the last block goes on.
    is_open: bool,
    /// JSON text of the last block's arguments, where it is a call.
    arguments: String,
    end: Option<MessageEnd>,
}

impl MessagesShape {
    pub(crate) fn new(
        names: ReplyNames,
        asked: &MessagesRequest,
        request: &engine::Request,
    ) -> Self {
        let schemas = argument_schemas(&asked.conversation.tools);
        let call_ids = names.id.replacen("msg_", "toolu_", 1);
        Self {
            calls: ToolCallReader::new(format!("{call_ids}_"), schemas),
            message: Message {
                id: names.id,
                kind: "message",
                role: "assistant",
                model: names.model,
                content: Vec::new(),
                stop_reason: None,
                stop_sequence: None,
                usage: MessagesUsage {
                    // What the cache spares of it is not known before it was read.
                    input_tokens: request.prompt_token_ids.len() as u64,
                    ..MessagesUsage::default()
                },
                system_fingerprint: names.system_fingerprint,
            },
            is_open: false,
            arguments: String::new(),
            end: None,
        }
    }

    /// Index of the last block.
    fn index(&self) -> usize {
        self.message.content.len().saturating_sub(1)
    }

    /// Ends the open block, if one is.
    fn close(&mut self, events: &mut Vec<MessageEvent>) {
        if !std::mem::take(&mut self.is_open) {
            return;
        }
        let written = std::mem::take(&mut self.arguments);
        if let Some(Block::ToolUse { input, .. }) = self.message.content.last_mut() {
            *input = match serde_json::from_str(&written) {
                Ok(object @ Value::Object(_)) => object,
                _ => Value::String(written),
            };
        }
        events.push(MessageEvent::ContentBlockStop {
            index: self.index(),
        });
    }

    fn open(&mut self, block: Block, events: &mut Vec<MessageEvent>) {
        self.close(events);
        self.message.content.push(block.clone());
        self.is_open = true;
        events.push(MessageEvent::ContentBlockStart {
            index: self.index(),
            content_block: block,
        });
    }

    fn append(&mut self, delta: BlockDelta, events: &mut Vec<MessageEvent>) {
        events.push(MessageEvent::ContentBlockDelta {
            index: self.index(),
            delta,
        });
    }

    /// Appends entries of one channel.
    fn add_run(&mut self, run: &[Entry], events: &mut Vec<MessageEvent>) {
        let spelled: String = run.iter().map(|entry| entry.text.as_str()).collect();
        let channel = run.first().map(|entry| entry.channel).unwrap_or_default();
        match channel {
            Channel::ToolCall => {
                let pieces = run.iter().flat_map(|entry| &entry.calls);
                for delta in self.calls.push(pieces) {
                    self.add_call(delta, events);
                }
            }
            _ if spelled.is_empty() => {}
            Channel::Reasoning | Channel::Content => self.add_text(channel, spelled, events),
        }
    }

    /// Appends text to the open block, or to a new one where that is of another kind.
    fn add_text(&mut self, channel: Channel, text: String, events: &mut Vec<MessageEvent>) {
        let is_thinking = channel == Channel::Reasoning;
        let goes_on = match self.message.content.last() {
            Some(Block::Thinking { .. }) => self.is_open && is_thinking,
            Some(Block::Text { .. }) => self.is_open && !is_thinking,
            _ => false,
        };
        if !goes_on {
            let block = if is_thinking {
                thinking_block()
            } else {
                text_block()
            };
            self.open(block, events);
        }
        if let Some(Block::Thinking { thinking: all, .. } | Block::Text { text: all, .. }) =
            self.message.content.last_mut()
        {
            all.push_str(&text);
        }
        let delta = if is_thinking {
            BlockDelta::ThinkingDelta { thinking: text }
        } else {
            BlockDelta::TextDelta { text }
        };
        self.append(delta, events);
    }

    fn add_call(&mut self, delta: ToolCallDelta, events: &mut Vec<MessageEvent>) {
        if let Some(name) = delta.function.name {
            let block = Block::ToolUse {
                id: delta.id.unwrap_or_default(),
                name,
                input: Value::Object(Map::new()),
            };
            self.open(block, events);
        }
        let partial_json = delta.function.arguments;
        if !partial_json.is_empty() {
            self.arguments.push_str(&partial_json);
            self.append(BlockDelta::InputJsonDelta { partial_json }, events);
        }
    }

    /// Takes an event; what it adds to a stream.
    fn take(&mut self, event: PromptEvent) -> Result<Vec<MessageEvent>, ApiError> {
        let mut events = Vec::new();
        match event.event {
            OutputEvent::Delta { entries, .. } => {
                for run in entries.chunk_by(|a, b| a.channel == b.channel) {
                    self.add_run(run, &mut events);
                }
            }
            OutputEvent::Finished { reason, .. } => {
                if let Some(delta) = self.calls.finish() {
                    self.add_call(delta, &mut events);
                }
                self.close(&mut events);
                let end = message_end(reason, self.calls.num_calls());
                self.message.stop_reason = Some(end.stop_reason);
                self.message.stop_sequence.clone_from(&end.stop_sequence);
                self.end = Some(end);
            }
            OutputEvent::Prompt { .. } => {
                let detail = "scores of a prompt came to a message".to_owned();
                return Err(ApiError::Internal(detail));
            }
            OutputEvent::Failed(error) => return Err(error.into()),
        }
        Ok(events)
    }
}

fn text_block() -> Block {
    Block::Text {
        text: String::new(),
        citations: None,
    }
}

fn thinking_block() -> Block {
    Block::Thinking {
        thinking: String::new(),
        signature: String::new(),
    }
}

fn message_end(reason: engine::FinishReason, num_calls: u32) -> MessageEnd {
    let (stop_reason, stop_sequence) = match reason {
        engine::FinishReason::EndToken(_) if num_calls > 0 => (StopReason::ToolUse, None),
        engine::FinishReason::EndToken(_) => (StopReason::EndTurn, None),
        engine::FinishReason::StopString(stop) => (StopReason::StopSequence, Some(stop)),
        engine::FinishReason::Length => (StopReason::MaxTokens, None),
    };
    MessageEnd {
        stop_reason,
        stop_sequence,
    }
}

fn usage_of(usage: Usage) -> MessagesUsage {
    let cached = usage.prompt_tokens_details.cached_tokens;
    MessagesUsage {
        input_tokens: usage.prompt_tokens - cached,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: cached,
        output_tokens: usage.completion_tokens,
    }
}

impl ReplyShape for MessagesShape {
    type Chunk = MessageEvent;
    type Whole = Message;

    fn opening(&mut self) -> Vec<MessageEvent> {
        vec![MessageEvent::MessageStart {
            message: Box::new(self.message.clone()),
        }]
    }

    fn chunks(&mut self, event: PromptEvent) -> Result<Vec<MessageEvent>, ApiError> {
        self.take(event)
    }

    fn last_chunks(&mut self, usage: Usage) -> Vec<MessageEvent> {
        let end = self.end.take().map(|delta| MessageEvent::MessageDelta {
            delta,
            usage: usage_of(usage),
        });
        end.into_iter().chain([MessageEvent::MessageStop]).collect()
    }

    fn event_name(chunk: &MessageEvent) -> Option<&str> {
        Some(chunk.name())
    }

    fn failure(error: &ApiError) -> StreamEnd {
        let (status, body) = error.to_reply();
        StreamEnd {
            event_name: Some("error"),
            data: serde_json::to_vec(&MessagesError::new(status.as_u16(), body.error.message))
                .expect("plain structs into memory cannot fail"),
        }
    }

    const ENDS_WITH_DONE: bool = false;

    fn add(&mut self, event: PromptEvent) -> Result<(), ApiError> {
        self.take(event).map(drop)
    }

    fn whole(self, usage: Usage) -> Result<Message, ApiError> {
        Ok(Message {
            usage: usage_of(usage),
            ..self.message
        })
    }
}
