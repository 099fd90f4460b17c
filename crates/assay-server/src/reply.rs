//! One chat request under way: its events, what its reply is called, and how long it takes.

use assay_api::openai::ChatCompletion;
use assay_engine::OutputEvent;
use tokio::sync::mpsc;

use crate::convert::response::{ReplyBuilder, ReplyHead, UsageTotal};
use crate::error::ApiError;
use crate::lifecycle::Running;
use crate::metrics::RequestTimer;
use crate::state::AppState;

/// Dropped before its end, it is a client that has gone: the engine frees the request's slot.
pub(crate) struct Reply {
    pub(crate) app: AppState,
    pub(crate) head: ReplyHead,
    pub(crate) events: mpsc::Receiver<OutputEvent>,
    pub(crate) timer: RequestTimer,
    /// Held until the last byte was handed over; a draining server waits for it.
    pub(crate) _running: Running,
}

impl Reply {
    /// Waits for the whole reply.
    pub(crate) async fn collect(mut self) -> Result<ChatCompletion, ApiError> {
        let gathered = self.gather().await;
        let (builder, usage) = gathered.map_err(|error| self.app.cause(error))?;
        let completion = builder.build(self.head, usage.usage(), self.app.text())?;
        self.timer.completed();
        Ok(completion)
    }

    async fn gather(&mut self) -> Result<(ReplyBuilder, UsageTotal), ApiError> {
        let mut builder = ReplyBuilder::new(self.head.num_choices);
        let mut usage = UsageTotal::default();
        while usage.num_finished() < self.head.num_choices {
            let event = self.events.recv().await;
            match event.ok_or(ApiError::EngineStopped)? {
                OutputEvent::Delta {
                    choice_index,
                    entries,
                } => {
                    self.timer.text();
                    builder.delta(choice_index, entries)?;
                }
                OutputEvent::Finished {
                    choice_index,
                    reason,
                    end,
                    usage: counts,
                } => {
                    usage.add(counts);
                    builder.finished(choice_index, reason, end)?;
                }
                // No chat request asks for scores of its prompt.
                OutputEvent::Prompt { .. } => {}
                OutputEvent::Failed(error) => return Err(error.into()),
            }
        }
        Ok((builder, usage))
    }
}
