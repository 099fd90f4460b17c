//! Engine events to the Responses API: one object, or the events of one in the making.

use std::sync::Arc;

use assay_api::openai::responses::{
    EventBody, IncompleteDetails, OutputMessage, OutputText, Response, ResponseEvent,
    ResponseStatus,
};
use assay_api::openai::responses_request::ResponsesRequest;
use assay_api::openai::{LogprobEntry, Usage};
use assay_engine::{self as engine, Entry, OutputEvent};

use super::logprob_entries::{self, EntryStyle, Listing};
use super::reply_shape::{ReplyNames, ReplyShape};
use crate::error::ApiError;
use crate::model_text::ModelText;
use crate::reply::PromptEvent;

/// The reply of one request as it stands.
#[derive(Debug)]
pub(crate) struct ResponsesShape {
    text: Arc<ModelText>,
    style: Option<EntryStyle>,
    response: Response,
    message: OutputMessage,
    part: OutputText,
    num_events: u64,
}

impl ResponsesShape {
    pub(crate) fn new(names: ReplyNames, asked: &ResponsesRequest, text: &Arc<ModelText>) -> Self {
        let generation = &asked.generation;
        Self {
            text: Arc::clone(text),
            style: EntryStyle::of(generation, Listing::NamedAlone),
            message: OutputMessage {
                id: names.id.replacen("resp", "msg", 1),
                kind: "message",
                status: ResponseStatus::InProgress,
                role: "assistant",
                content: Vec::new(),
            },
            part: OutputText {
                kind: "output_text",
                ..OutputText::default()
            },
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
                parallel_tool_calls: true,
                previous_response_id: None,
                temperature: generation.temperature,
                top_p: generation.top_p,
                tool_choice: "auto",
                tools: Vec::new(),
                truncation: "disabled",
                usage: None,
                system_fingerprint: names.system_fingerprint,
                seed: names.seed,
            },
            num_events: 0,
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

    fn item_event(&mut self, kind: &'static str) -> ResponseEvent {
        let item = Box::new(self.message.clone());
        let body = EventBody::Item {
            output_index: 0,
            item,
        };
        self.event(kind, body)
    }

    fn part_event(&mut self, kind: &'static str) -> ResponseEvent {
        let body = EventBody::Part {
            item_id: self.message.id.clone(),
            output_index: 0,
            content_index: 0,
            part: Box::new(self.part.clone()),
        };
        self.event(kind, body)
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

    /// Appends released entries; what they add.
    fn append(&mut self, entries: &[Entry]) -> Result<(String, Vec<LogprobEntry>), ApiError> {
        let delta: String = entries.iter().map(|entry| entry.text.as_str()).collect();
        let logprobs = self.entries(entries)?;
        self.part.text.push_str(&delta);
        self.part.logprobs.extend_from_slice(&logprobs);
        Ok((delta, logprobs))
    }

    fn finish(&mut self, reason: &engine::FinishReason) {
        let is_cut = *reason == engine::FinishReason::Length;
        let status = if is_cut {
            ResponseStatus::Incomplete
        } else {
            ResponseStatus::Completed
        };
        self.response.incomplete_details = is_cut.then_some(IncompleteDetails {
            reason: "max_output_tokens",
        });
        self.message.content = vec![self.part.clone()];
        self.message.status = status;
        self.response.status = status;
        self.response.output = vec![self.message.clone()];
    }

    fn unknown(event: &PromptEvent) -> ApiError {
        ApiError::Internal(format!("an event of no response: {event:?}"))
    }
}

impl ReplyShape for ResponsesShape {
    type Chunk = ResponseEvent;
    type Whole = Response;

    fn opening(&mut self) -> Vec<ResponseEvent> {
        vec![
            self.response_event("response.created"),
            self.response_event("response.in_progress"),
            self.item_event("response.output_item.added"),
            self.part_event("response.content_part.added"),
        ]
    }

    fn chunks(&mut self, event: PromptEvent) -> Result<Vec<ResponseEvent>, ApiError> {
        match event.event {
            OutputEvent::Delta { entries, .. } => {
                let (delta, logprobs) = self.append(&entries)?;
                let body = EventBody::Delta {
                    item_id: self.message.id.clone(),
                    output_index: 0,
                    content_index: 0,
                    delta,
                    logprobs,
                };
                Ok(vec![self.event("response.output_text.delta", body)])
            }
            OutputEvent::Finished { reason, .. } => {
                self.finish(&reason);
                let body = EventBody::Text {
                    item_id: self.message.id.clone(),
                    output_index: 0,
                    content_index: 0,
                    text: self.part.text.clone(),
                    logprobs: self.part.logprobs.clone(),
                };
                Ok(vec![
                    self.event("response.output_text.done", body),
                    self.part_event("response.content_part.done"),
                    self.item_event("response.output_item.done"),
                ])
            }
            OutputEvent::Prompt { .. } | OutputEvent::Failed(_) => Err(Self::unknown(&event)),
        }
    }

    /// The last event: it carries the whole reply and its counts.
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
        match &event.event {
            OutputEvent::Delta { entries, .. } => self.append(entries).map(|_| ()),
            OutputEvent::Finished { reason, .. } => {
                self.finish(reason);
                Ok(())
            }
            OutputEvent::Prompt { .. } | OutputEvent::Failed(_) => Err(Self::unknown(&event)),
        }
    }

    fn whole(self, usage: Usage) -> Result<Response, ApiError> {
        Ok(Response {
            usage: Some(usage.into()),
            ..self.response
        })
    }
}
