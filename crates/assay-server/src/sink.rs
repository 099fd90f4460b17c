//! The way of one request's events from the engine's thread to the connection's task.
//!
//! The channel holds every event a request can have, so the engine never waits for a slow client; memory is
//! bounded by what the request may generate. A dropped receiver is a client that has gone.

use assay_engine::{Gone, OutputEvent, OutputSink};
use tokio::sync::mpsc;

/// Engine side.
#[derive(Debug)]
pub(crate) struct ChannelSink(mpsc::Sender<OutputEvent>);

/// Both ends for a request of `num_choices` replies of at most `max_tokens` tokens.
pub(crate) fn output_channel(
    num_choices: u32,
    max_tokens: u32,
) -> (ChannelSink, mpsc::Receiver<OutputEvent>) {
    // Per choice a delta for each token, one for text held to the end, and the end; one failure for all.
    let per_choice = usize::try_from(max_tokens).map_or(usize::MAX, |max| max.saturating_add(2));
    let num_choices = usize::try_from(num_choices).unwrap_or(usize::MAX);
    let capacity = per_choice.saturating_mul(num_choices).saturating_add(1);
    let (sender, receiver) = mpsc::channel(capacity.min(tokio::sync::Semaphore::MAX_PERMITS));
    (ChannelSink(sender), receiver)
}

impl OutputSink for ChannelSink {
    fn send(&mut self, event: OutputEvent) -> Result<(), Gone> {
        self.0.try_send(event).map_err(|error| {
            if let mpsc::error::TrySendError::Full(event) = error {
                tracing::error!(?event, "more events than a request can have");
            }
            Gone
        })
    }

    fn is_gone(&self) -> bool {
        self.0.is_closed()
    }
}
