//! A reply as server-sent events: chunks, and `[DONE]` where the endpoint has it; an error after the headers is one event.

use std::collections::VecDeque;
use std::time::Duration;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};

use crate::convert::reply_shape::ReplyShape;
use crate::error::ApiError;
use crate::reply::{PromptEvent, Reply};
use crate::state::AppState;

const DONE: &[u8] = b"data: [DONE]\n\n";
const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

/// Events taken together into one write, at most.
const MAX_EVENTS_PER_WRITE: usize = 64;

/// Bytes after which a write takes no further event.
const WRITE_BYTES: usize = 256 << 10;

/// A reply in the way that was asked for: streamed, or as one object once it is whole.
pub(crate) async fn answer<S: ReplyShape>(
    app: &AppState,
    reply: Reply,
    shape: S,
    is_streamed: bool,
    ignored: &[String],
) -> Result<Response, ApiError> {
    let mut response = if is_streamed {
        respond(reply, shape, app.config().limits.keep_alive)
    } else {
        Json(reply.collect(shape).await?).into_response()
    };
    crate::ignored::list(ignored, &mut response);
    Ok(response)
}

/// The whole stream. Dropping the response body drops the events' receiver, by which the engine learns that
/// the client has gone.
fn respond<S: ReplyShape>(reply: Reply, mut shape: S, keep_alive: Duration) -> Response {
    let mut opening = Vec::new();
    for chunk in shape.opening() {
        write_chunk::<S>(&mut opening, &chunk);
    }
    let stream = ReplyStream {
        reply,
        shape,
        state: State::Open,
    };
    let first: VecDeque<Bytes> = (!opening.is_empty())
        .then(|| opening.into())
        .into_iter()
        .collect();
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

struct ReplyStream<S> {
    reply: Reply,
    shape: S,
    state: State,
}

impl<S: ReplyShape> ReplyStream<S> {
    /// Everything that is ready by now; `None` after the end.
    async fn next_frame(&mut self, keep_alive: Duration) -> Option<Bytes> {
        let mut frame = Vec::new();
        while frame.is_empty() {
            if self.state == State::Ended {
                return None;
            }
            let waited = tokio::time::timeout(keep_alive, self.reply.next()).await;
            let Ok(event) = waited else {
                return Some(Bytes::from_static(KEEP_ALIVE));
            };
            self.take(event, &mut frame);
            for _ in 1..MAX_EVENTS_PER_WRITE {
                if self.state == State::Ended || frame.len() >= WRITE_BYTES {
                    break;
                }
                match self.reply.try_next() {
                    Some(event) => self.take(event, &mut frame),
                    None => break,
                }
            }
        }
        Some(frame.into())
    }

    /// Writes what `event` says, and the end after the last.
    fn take(&mut self, event: Result<PromptEvent, ApiError>, frame: &mut Vec<u8>) {
        match event.and_then(|event| self.shape.chunks(event)) {
            Ok(chunks) => {
                for chunk in chunks {
                    write_chunk::<S>(frame, &chunk);
                }
                if self.reply.is_finished() {
                    self.finish(frame);
                }
            }
            Err(error) => {
                let end = S::failure(&error);
                write_event_name(frame, end.event_name);
                write_data(frame, &end.data);
                self.end(frame);
            }
        }
    }

    fn finish(&mut self, frame: &mut Vec<u8>) {
        let usage = self.reply.complete();
        for chunk in self.shape.last_chunks(usage) {
            write_chunk::<S>(frame, &chunk);
        }
        self.end(frame);
    }

    fn end(&mut self, frame: &mut Vec<u8>) {
        if S::ENDS_WITH_DONE {
            frame.extend_from_slice(DONE);
        }
        self.state = State::Ended;
    }
}

/// A chunk, under its name where it has one.
fn write_chunk<S: ReplyShape>(frame: &mut Vec<u8>, chunk: &S::Chunk) {
    write_event_name(frame, S::event_name(chunk));
    let data = serde_json::to_vec(chunk).expect("plain structs into memory cannot fail");
    write_data(frame, &data);
}

fn write_event_name(frame: &mut Vec<u8>, name: Option<&str>) {
    if let Some(name) = name {
        frame.extend_from_slice(format!("event: {name}\n").as_bytes());
    }
}

/// One `data:` line; JSON text has no line breaks of its own.
fn write_data(frame: &mut Vec<u8>, json: &[u8]) {
    frame.extend_from_slice(b"data: ");
    frame.extend_from_slice(json);
    frame.extend_from_slice(b"\n\n");
}
