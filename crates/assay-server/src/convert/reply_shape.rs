//! What an endpoint makes of a reply's events: chunks as they come, or one object of all of them. Both are made of
//! the same pieces, so a collected stream equals the unstreamed reply.

use assay_api::openai::Usage;
use serde::Serialize;
use serde_json::Value;

use crate::error::ApiError;
use crate::reply::PromptEvent;

/// The form of one endpoint's replies; made for one request.
pub(crate) trait ReplyShape: Send + 'static {
    /// One `data:` object of a stream.
    type Chunk: Serialize + Send;
    /// The unstreamed reply.
    type Whole: Serialize;

    /// What a stream begins with, before any event.
    fn opening(&mut self) -> Vec<Self::Chunk>;

    /// What an event adds to a stream.
    fn chunks(&mut self, event: PromptEvent) -> Result<Vec<Self::Chunk>, ApiError>;

    /// Keeps the reply's receipt for its end; told before it, where the client gets one. Shapes that have no place for
    /// it say nothing of it.
    fn receive_receipt(&mut self, _receipt: Value) {}

    /// What a stream ends with, once the counts are known.
    fn last_chunks(&mut self, usage: Usage) -> Vec<Self::Chunk>;

    /// The name of the event that a chunk is, where the endpoint's events have names.
    fn event_name(_chunk: &Self::Chunk) -> Option<&str> {
        None
    }

    /// What a stream says of a failure; nothing but its end follows.
    fn failure(error: &ApiError) -> StreamEnd {
        StreamEnd {
            event_name: None,
            data: serde_json::to_vec(&error.to_reply().1)
                .expect("plain structs into memory cannot fail"),
        }
    }

    /// Whether a stream ends with `[DONE]`.
    const ENDS_WITH_DONE: bool = true;

    /// Keeps an event for the unstreamed reply.
    fn add(&mut self, event: PromptEvent) -> Result<(), ApiError>;

    /// The unstreamed reply of all that was added.
    fn whole(self, usage: Usage) -> Result<Self::Whole, ApiError>;
}

/// An event that tells of a failure.
#[derive(Debug)]
pub(crate) struct StreamEnd {
    /// Its name, where the endpoint's events have names.
    pub(crate) event_name: Option<&'static str>,
    /// One JSON object.
    pub(crate) data: Vec<u8>,
}

/// What all parts of one reply share and no request decides.
#[derive(Clone, Debug)]
pub(crate) struct ReplyNames {
    pub(crate) id: String,
    pub(crate) created: u64,
    pub(crate) model: String,
    pub(crate) system_fingerprint: String,
    pub(crate) seed: i64,
}
