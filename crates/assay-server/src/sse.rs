//! A chat reply as server-sent events: chunks, `[DONE]`; an error after the headers is one `data:` object.

use std::collections::VecDeque;
use std::time::Duration;

use assay_api::openai::ChatChunk;
use assay_engine::OutputEvent;
use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::convert::response::UsageTotal;
use crate::error::ApiError;
use crate::reply::Reply;

const DONE: &[u8] = b"data: [DONE]\n\n";
const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

/// Events taken together into one write, at most.
const MAX_EVENTS_PER_WRITE: usize = 64;

/// The whole stream. Dropping the response body drops the events' receiver, by which the engine learns that
/// the client has gone.
pub(crate) fn respond(reply: Reply, keep_alive: Duration) -> Response {
    let mut opening = Vec::new();
    for index in 0..reply.head.num_choices {
        write_data(&mut opening, &reply.head.first_chunk(index));
    }
    let stream = ChatStream {
        reply,
        usage: UsageTotal::default(),
        state: State::Open,
    };
    let first = VecDeque::from([Bytes::from(opening)]);
    let frames =
        futures_util::stream::unfold((stream, first), move |(mut stream, mut ready)| async move {
            let frame = match ready.pop_front() {
                Some(frame) => frame,
                None => stream.next_frame(keep_alive).await?,
            };
            Some((Ok::<_, std::convert::Infallible>(frame), (stream, ready)))
        });
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/event-stream; charset=utf-8"),
        ),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        // Proxies must not hold chunks back.
        (
            header::HeaderName::from_static("x-accel-buffering"),
            HeaderValue::from_static("no"),
        ),
    ];
    (headers, Body::from_stream(frames)).into_response()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Ended,
}

struct ChatStream {
    reply: Reply,
    usage: UsageTotal,
    state: State,
}

impl ChatStream {
    /// Everything that is ready by now; `None` after the end.
    async fn next_frame(&mut self, keep_alive: Duration) -> Option<Bytes> {
        let mut frame = Vec::new();
        while frame.is_empty() {
            if self.state == State::Ended {
                return None;
            }
            let waited = tokio::time::timeout(keep_alive, self.reply.events.recv()).await;
            let Ok(event) = waited else {
                return Some(Bytes::from_static(KEEP_ALIVE));
            };
            self.take(event, &mut frame);
            for _ in 1..MAX_EVENTS_PER_WRITE {
                if self.state == State::Ended {
                    break;
                }
                match self.reply.events.try_recv() {
                    Ok(event) => self.take(Some(event), &mut frame),
                    Err(_) => break,
                }
            }
        }
        Some(frame.into())
    }

    /// Writes what `event` says; `None` is an engine that went away.
    fn take(&mut self, event: Option<OutputEvent>, frame: &mut Vec<u8>) {
        let event = event.ok_or(ApiError::EngineStopped);
        if let Err(error) = event.and_then(|event| self.write_event(event, frame)) {
            let error = self.reply.app.cause(error);
            write_data(frame, &error.to_reply().1);
            frame.extend_from_slice(DONE);
            self.state = State::Ended;
        }
    }

    fn write_event(&mut self, event: OutputEvent, frame: &mut Vec<u8>) -> Result<(), ApiError> {
        let Reply {
            app, head, timer, ..
        } = &mut self.reply;
        let text = app.text();
        match event {
            OutputEvent::Delta {
                choice_index,
                entries,
            } => {
                timer.text();
                if let Some(chunk) = head.delta_chunk(choice_index, &entries, text)? {
                    write_data(frame, &chunk);
                }
            }
            OutputEvent::Finished {
                choice_index,
                reason,
                end,
                usage,
            } => {
                self.usage.add(usage);
                let chunk = head.finish_chunk(choice_index, &reason, end.as_ref(), text)?;
                write_data(frame, &chunk);
                if self.usage.num_finished() == head.num_choices {
                    self.finish(frame);
                }
            }
            // No chat request asks for scores of its prompt.
            OutputEvent::Prompt { .. } => {}
            OutputEvent::Failed(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn finish(&mut self, frame: &mut Vec<u8>) {
        let usage = self.usage.usage();
        self.reply.timer.completed();
        let last: Option<ChatChunk> = self.reply.head.usage_chunk(usage);
        if let Some(chunk) = last {
            write_data(frame, &chunk);
        }
        frame.extend_from_slice(DONE);
        self.state = State::Ended;
    }
}

/// One `data:` line; JSON text has no line breaks of its own.
fn write_data(frame: &mut Vec<u8>, data: &impl Serialize) {
    frame.extend_from_slice(b"data: ");
    serde_json::to_writer(&mut *frame, data).expect("plain structs into memory cannot fail");
    frame.extend_from_slice(b"\n\n");
}
