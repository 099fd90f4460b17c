//! The way of a request's events from the engine's thread to the connection's task.
//!
//! The channel holds every event a request can have, so the engine never waits for a slow client; memory is
//! bounded by what the request may generate and score. A dropped receiver is a client that has gone.

use std::sync::Arc;

use assay_engine::decision::{DecisionReading, DecisionSink};
use assay_engine::{Gone, OutputEvent, OutputSink, Request, RequestError, TokenOutput};
use tokio::sync::{mpsc, oneshot};

use crate::metrics::WaitTimer;
use crate::receipts::Trace;
use crate::reply::PromptEvent;

/// Engine side, for one prompt of a request.
#[derive(Debug)]
pub(crate) struct ChannelSink {
    sender: mpsc::Sender<PromptEvent>,
    prompt_index: usize,
    wait: Arc<WaitTimer>,
    /// Hears all for the reply's receipt.
    trace: Option<Trace>,
}

/// One receiver for all prompts of a request, and a sink for each, in order.
pub(crate) fn output_channel<'a>(
    requests: impl Iterator<Item = (usize, &'a Request, Option<Trace>)>,
    wait: WaitTimer,
) -> (Vec<ChannelSink>, mpsc::Receiver<PromptEvent>) {
    let requests: Vec<_> = requests.collect();
    let capacity = requests
        .iter()
        .map(|(_, request, _)| num_events(request))
        .fold(1, usize::saturating_add);
    let (sender, receiver) = mpsc::channel(capacity.min(tokio::sync::Semaphore::MAX_PERMITS));
    let wait = Arc::new(wait);
    let sinks = requests
        .into_iter()
        .map(|(prompt_index, _, trace)| ChannelSink {
            sender: sender.clone(),
            prompt_index,
            wait: Arc::clone(&wait),
            trace,
        });
    (sinks.collect(), receiver)
}

/// Events that a request can have at most: per choice a delta for each token, one for text held to the end, and the
/// end; one for each scored token of the prompt; one failure for all.
fn num_events(request: &Request) -> usize {
    let as_usize = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let per_choice = as_usize(request.max_tokens).saturating_add(2);
    let of_prompt = match request.prompt_logprobs {
        Some(_) => request.prompt_token_ids.len(),
        None => 0,
    };
    per_choice
        .saturating_mul(as_usize(request.num_choices))
        .saturating_add(of_prompt)
        .saturating_add(1)
}

impl OutputSink for ChannelSink {
    fn send(&mut self, event: OutputEvent) -> Result<(), Gone> {
        if let Some(trace) = &self.trace {
            trace.event(&event);
        }
        let event = PromptEvent {
            prompt_index: self.prompt_index,
            event,
        };
        self.sender.try_send(event).map_err(|error| {
            if let mpsc::error::TrySendError::Full(event) = error {
                tracing::error!(?event, "more events than a request can have");
            }
            Gone
        })
    }

    fn drawn(&mut self, choice_index: u32, output: &TokenOutput) {
        if let Some(trace) = &self.trace {
            trace.drawn(choice_index, output);
        }
    }

    fn is_gone(&self) -> bool {
        self.sender.is_closed()
    }

    fn scheduled(&mut self) {
        self.wait.end();
    }
}

type Outcome = Result<DecisionReading, RequestError>;

/// Engine side of a decision, which has one outcome.
#[derive(Debug)]
pub(crate) struct OutcomeSink(Option<oneshot::Sender<Outcome>>);

impl OutcomeSink {
    /// Both ends; dropping the receiver is a client that has gone.
    pub(crate) fn channel() -> (Self, oneshot::Receiver<Outcome>) {
        let (sender, receiver) = oneshot::channel();
        (Self(Some(sender)), receiver)
    }
}

impl DecisionSink for OutcomeSink {
    fn send(&mut self, outcome: Outcome) {
        if let Some(sender) = self.0.take() {
            // Nobody listens any more, and nothing is left to free.
            let _ = sender.send(outcome);
        }
    }

    fn is_gone(&self) -> bool {
        self.0.as_ref().is_none_or(oneshot::Sender::is_closed)
    }
}
