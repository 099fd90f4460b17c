//! Engine events to the Responses API: one object, or the events of one in the making.

use std::sync::Arc;

use assay_api::openai::responses::{
    EventBody, IncompleteDetails, OutputCall, OutputItem, OutputMessage, OutputPart,
    OutputReasoning, OutputText, ReasoningText, Response, ResponseEvent, ResponseStatus,
};
use assay_api::openai::responses_request::ResponsesRequest;
use assay_api::openai::{LogprobEntry, ToolCallDelta, Usage};
use assay_engine::{self as engine, Channel, Entry, OutputEvent};

use serde_json::Value;

use super::logprob_entries::{self, EntryStyle, Listing};
use super::reply_shape::{ReplyNames, ReplyShape};
use super::tool_calls::{ToolCallReader, argument_schemas};
use crate::error::ApiError;
use crate::model_text::ModelText;
use crate::reply::PromptEvent;

/// The reply of one request as it stands.
#[derive(Debug)]
pub(crate) struct ResponsesShape {
    text: Arc<ModelText>,
    style: Option<EntryStyle>,
    response: Response,
    calls: ToolCallReader,
    /// The item that goes on; its index is the number of those that are complete.
    open: Option<OpenItem>,
    /// Whether all that may come is one message.
    is_plain: bool,
    num_events: u64,
}

/// An item in the making.
#[derive(Clone, Debug)]
enum OpenItem {
    Message { id: String, part: OutputText },
    Reasoning { id: String, part: ReasoningText },
    Call(OutputCall),
}

impl OpenItem {
    fn id(&self) -> String {
        match self {
            Self::Message { id, .. } | Self::Reasoning { id, .. } => id.clone(),
            Self::Call(call) => call.id.clone(),
        }
    }

    fn part(&self) -> Option<OutputPart> {
        match self {
            Self::Message { part, .. } => Some(OutputPart::Text(part.clone())),
            Self::Reasoning { part, .. } => Some(OutputPart::Reasoning(part.clone())),
            Self::Call(_) => None,
        }
    }

    /// The item as it is told of: without its part until it is complete.
    fn item(&self, status: ResponseStatus) -> OutputItem {
        let is_complete = status != ResponseStatus::InProgress;
        match self.clone() {
            Self::Message { id, part } => OutputItem::Message(OutputMessage {
                id,
                kind: "message",
                status,
                role: "assistant",
                content: is_complete.then_some(part).into_iter().collect(),
            }),
            Self::Reasoning { id, part } => OutputItem::Reasoning(OutputReasoning {
                id,
                kind: "reasoning",
                status,
                summary: Vec::new(),
                content: is_complete.then_some(part).into_iter().collect(),
            }),
            Self::Call(call) => OutputItem::FunctionCall(OutputCall { status, ..call }),
        }
    }
}

impl ResponsesShape {
    pub(crate) fn new(
        names: ReplyNames,
        asked: &ResponsesRequest,
        request: &engine::Request,
        text: &Arc<ModelText>,
    ) -> Self {
        let generation = &asked.generation;
        let schemas = argument_schemas(&asked.conversation.tools);
        let call_ids = names.id.replacen("resp-", "call_", 1);
        let format = &request.format;
        Self {
            text: Arc::clone(text),
            style: EntryStyle::of(generation, Listing::NamedAlone),
            calls: ToolCallReader::new(format!("{call_ids}_"), schemas),
            open: None,
            is_plain: format.reasoning.is_none() && format.tool_calls.is_none(),
            response: Response {
                id: names.id,
                object: "response",
                created_at: names.created,
                status: ResponseStatus::InProgress,
                error: None,
                incomplete_details: None,
                echoed: asked.echoed.clone(),
                model: names.model,
                output: Vec::new(),
                previous_response_id: None,
                temperature: generation.temperature,
                top_p: generation.top_p,
                truncation: "disabled",
                usage: None,
                system_fingerprint: names.system_fingerprint,
                seed: names.seed,
                receipt: None,
            },
            num_events: 0,
        }
    }

    /// Name of the item that comes next.
    fn next_id(&self, kind: &str) -> String {
        let id = self.response.id.replacen("resp", kind, 1);
        match self.response.output.len() {
            0 => id,
            index => format!("{id}-{index}"),
        }
    }

    fn event(&mut self, kind: &'static str, body: EventBody) -> ResponseEvent {
        let sequence_number = self.num_events;
        self.num_events += 1;
        ResponseEvent {
            kind,
            sequence_number,
            body,
        }
    }

    fn response_event(&mut self, kind: &'static str) -> ResponseEvent {
        let response = Box::new(self.response.clone());
        self.event(kind, EventBody::Response { response })
    }

    fn item_event(&mut self, kind: &'static str, item: OutputItem) -> ResponseEvent {
        let body = EventBody::Item {
            output_index: self.response.output.len(),
            item: Box::new(item),
        };
        self.event(kind, body)
    }

    fn part_event(
        &mut self,
        kind: &'static str,
        item_id: String,
        part: OutputPart,
    ) -> ResponseEvent {
        let body = EventBody::Part {
            item_id,
            output_index: self.response.output.len(),
            content_index: 0,
            part: Box::new(part),
        };
        self.event(kind, body)
    }

    fn open(&mut self, item: OpenItem, events: &mut Vec<ResponseEvent>) {
        let told = item.item(ResponseStatus::InProgress);
        events.push(self.item_event("response.output_item.added", told));
        if let Some(part) = item.part() {
            events.push(self.part_event("response.content_part.added", item.id(), part));
        }
        self.open = Some(item);
    }

    fn open_message(&mut self, events: &mut Vec<ResponseEvent>) {
        let item = OpenItem::Message {
            id: self.next_id("msg"),
            part: OutputText {
                kind: "output_text",
                ..OutputText::default()
            },
        };
        self.open(item, events);
    }

    /// Completes the open item, if there is one.
    fn close(&mut self, status: ResponseStatus, events: &mut Vec<ResponseEvent>) {
        let Some(open) = self.open.take() else {
            return;
        };
        let (item_id, output_index) = (open.id(), self.response.output.len());
        let (kind, body) = match &open {
            OpenItem::Message { part, .. } => (
                "response.output_text.done",
                EventBody::Text {
                    item_id: item_id.clone(),
                    output_index,
                    content_index: 0,
                    text: part.text.clone(),
                    logprobs: Some(part.logprobs.clone()),
                },
            ),
            OpenItem::Reasoning { part, .. } => (
                "response.reasoning_text.done",
                EventBody::Text {
                    item_id: item_id.clone(),
                    output_index,
                    content_index: 0,
                    text: part.text.clone(),
                    logprobs: None,
                },
            ),
            OpenItem::Call(call) => (
                "response.function_call_arguments.done",
                EventBody::Arguments {
                    item_id: item_id.clone(),
                    output_index,
                    name: call.name.clone(),
                    arguments: call.arguments.clone(),
                },
            ),
        };
        events.push(self.event(kind, body));
        if let Some(part) = open.part() {
            events.push(self.part_event("response.content_part.done", item_id, part));
        }
        let item = open.item(status);
        events.push(self.item_event("response.output_item.done", item.clone()));
        self.response.output.push(item);
    }

    fn entries(&self, entries: &[Entry]) -> Result<Vec<LogprobEntry>, ApiError> {
        let Some(style) = self.style else {
            return Ok(Vec::new());
        };
        let written = entries.iter();
        written
            .map(|entry| logprob_entries::visible(entry, style, &self.text))
            .collect()
    }

    /// Appends entries of one channel.
    fn add_run(&mut self, run: &[Entry], events: &mut Vec<ResponseEvent>) -> Result<(), ApiError> {
        let channel = run.first().map(|entry| entry.channel).unwrap_or_default();
        let delta: String = run.iter().map(|entry| entry.text.as_str()).collect();
        match channel {
            Channel::ToolCall => {
                let pieces = run.iter().flat_map(|entry| &entry.calls);
                for delta in self.calls.push(pieces) {
                    self.add_call(delta, events);
                }
            }
            Channel::Reasoning => self.add_thoughts(delta, events),
            Channel::Content => {
                let logprobs = self.entries(run)?;
                self.add_text(delta, logprobs, events);
            }
        }
        Ok(())
    }

    fn add_text(
        &mut self,
        delta: String,
        logprobs: Vec<LogprobEntry>,
        events: &mut Vec<ResponseEvent>,
    ) {
        if !matches!(self.open, Some(OpenItem::Message { .. })) {
            // What spells nothing begins no message.
            if delta.is_empty() {
                return;
            }
            self.close(ResponseStatus::Completed, events);
            self.open_message(events);
        }
        let Some(OpenItem::Message { id, part }) = &mut self.open else {
            return;
        };
        part.text.push_str(&delta);
        part.logprobs.extend_from_slice(&logprobs);
        let body = EventBody::Delta {
            item_id: id.clone(),
            output_index: self.response.output.len(),
            content_index: 0,
            delta,
            logprobs: Some(logprobs),
        };
        events.push(self.event("response.output_text.delta", body));
    }

    fn add_thoughts(&mut self, delta: String, events: &mut Vec<ResponseEvent>) {
        if delta.is_empty() {
            return;
        }
        if !matches!(self.open, Some(OpenItem::Reasoning { .. })) {
            self.close(ResponseStatus::Completed, events);
            let item = OpenItem::Reasoning {
                id: self.next_id("rs"),
                part: ReasoningText {
                    kind: "reasoning_text",
                    text: String::new(),
                },
            };
            self.open(item, events);
        }
        let Some(OpenItem::Reasoning { id, part }) = &mut self.open else {
            return;
        };
        part.text.push_str(&delta);
        let body = EventBody::Delta {
            item_id: id.clone(),
            output_index: self.response.output.len(),
            content_index: 0,
            delta,
            logprobs: None,
        };
        events.push(self.event("response.reasoning_text.delta", body));
    }

    fn add_call(&mut self, delta: ToolCallDelta, events: &mut Vec<ResponseEvent>) {
        if let Some(name) = delta.function.name {
            self.close(ResponseStatus::Completed, events);
            let call = OutputCall {
                id: self.next_id("fc"),
                kind: "function_call",
                status: ResponseStatus::InProgress,
                call_id: delta.id.unwrap_or_default(),
                name,
                arguments: String::new(),
            };
            self.open(OpenItem::Call(call), events);
        }
        let delta = delta.function.arguments;
        let Some(OpenItem::Call(call)) = &mut self.open else {
            return;
        };
        if delta.is_empty() {
            return;
        }
        call.arguments.push_str(&delta);
        let body = EventBody::ArgumentsDelta {
            item_id: call.id.clone(),
            output_index: self.response.output.len(),
            delta,
        };
        events.push(self.event("response.function_call_arguments.delta", body));
    }

    fn finish(&mut self, reason: &engine::FinishReason, events: &mut Vec<ResponseEvent>) {
        if let Some(delta) = self.calls.finish() {
            self.add_call(delta, events);
        }
        let is_cut = *reason == engine::FinishReason::Length;
        let status = if is_cut {
            ResponseStatus::Incomplete
        } else {
            ResponseStatus::Completed
        };
        // Every reply has an item.
        if self.open.is_none() && self.response.output.is_empty() {
            self.open_message(events);
        }
        self.close(status, events);
        self.response.incomplete_details = is_cut.then_some(IncompleteDetails {
            reason: "max_output_tokens",
        });
        self.response.status = status;
    }

    /// Takes an event; what it adds to a stream.
    fn take(&mut self, event: PromptEvent) -> Result<Vec<ResponseEvent>, ApiError> {
        let mut events = Vec::new();
        match &event.event {
            OutputEvent::Delta { entries, .. } => {
                for run in entries.chunk_by(|a, b| a.channel == b.channel) {
                    self.add_run(run, &mut events)?;
                }
            }
            OutputEvent::Finished { reason, .. } => self.finish(reason, &mut events),
            OutputEvent::Prompt { .. } | OutputEvent::Failed(_) => {
                let detail = format!("an event of no response: {event:?}");
                return Err(ApiError::Internal(detail));
            }
        }
        Ok(events)
    }
}

impl ReplyShape for ResponsesShape {
    type Chunk = ResponseEvent;
    type Whole = Response;

    fn opening(&mut self) -> Vec<ResponseEvent> {
        let mut events = vec![
            self.response_event("response.created"),
            self.response_event("response.in_progress"),
        ];
        if self.is_plain {
            self.open_message(&mut events);
        }
        events
    }

    fn chunks(&mut self, event: PromptEvent) -> Result<Vec<ResponseEvent>, ApiError> {
        self.take(event)
    }

    fn receive_receipt(&mut self, receipt: Value) {
        self.response.receipt = Some(receipt);
    }

    /// The last event carries the whole reply and its counts.
    fn last_chunks(&mut self, usage: Usage) -> Vec<ResponseEvent> {
        self.response.usage = Some(usage.into());
        let kind = match self.response.status {
            ResponseStatus::Incomplete => "response.incomplete",
            ResponseStatus::InProgress | ResponseStatus::Completed => "response.completed",
        };
        vec![self.response_event(kind)]
    }

    fn event_name(chunk: &ResponseEvent) -> Option<&str> {
        Some(chunk.kind)
    }

    fn add(&mut self, event: PromptEvent) -> Result<(), ApiError> {
        if self.is_plain && self.open.is_none() && self.response.output.is_empty() {
            // As in a stream, the message is there before its first text.
            self.open_message(&mut Vec::new());
        }
        self.take(event).map(drop)
    }

    fn whole(self, usage: Usage) -> Result<Response, ApiError> {
        Ok(Response {
            usage: Some(usage.into()),
            ..self.response
        })
    }
}
