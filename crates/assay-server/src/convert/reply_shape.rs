//! What an endpoint makes of a reply's events: chunks as they come, or one object of all of them. Both are made of
//! the same pieces, so a collected stream equals the unstreamed reply.

use assay_api::openai::Usage;
use serde::Serialize;

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

    /// The chunk with the counts, where the request asked.
    fn usage_chunk(&self, usage: Usage) -> Option<Self::Chunk>;

    /// Keeps an event for the unstreamed reply.
    fn add(&mut self, event: PromptEvent) -> Result<(), ApiError>;

    /// The unstreamed reply of all that was added.
    fn whole(self, usage: Usage) -> Result<Self::Whole, ApiError>;
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
