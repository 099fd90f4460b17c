//! The way of a request's events from the engine's thread to the connection's task.
//!
//! The channel holds every event a request can have, so the engine never waits for a slow client. What waits in it is
//! weighed: a stream whose client reads too slowly is cut off, and its places are free. A dropped receiver is a client
//! that has gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use assay_engine::decision::{DecisionReading, DecisionSink};
use assay_engine::{
    Gone, OutputEvent, OutputSink, Request, RequestError, TokenLogprobs, TokenOutput,
};
use tokio::sync::{mpsc, oneshot};

use crate::metrics::WaitTimer;
use crate::reply::PromptEvent;

/// Engine side, for one prompt of a request.
#[derive(Debug)]
pub(crate) struct ChannelSink {
    sender: mpsc::Sender<PromptEvent>,
    prompt_index: usize,
    wait: Arc<WaitTimer>,
    backlog: Arc<Backlog>,
}

/// Bytes of a request's events that nobody has taken yet.
#[derive(Debug)]
pub(crate) struct Backlog {
    limit_bytes: usize,
    waiting_bytes: AtomicUsize,
    is_over: AtomicBool,
}

impl Backlog {
    pub(crate) fn new(limit_bytes: usize) -> Self {
        Self {
            limit_bytes,
            waiting_bytes: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
        }
    }

    /// For what is taken as fast as it can be.
    pub(crate) fn unbounded() -> Self {
        Self::new(usize::MAX)
    }

    pub(crate) fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    /// Whether something did not fit. Nothing does after that, so that what was taken has no gap.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Weighs an event in; whether it fits. A single one always does.
    fn add(&self, event: &OutputEvent) -> bool {
        let bytes = weight(event);
        if self.is_over() {
            return false;
        }
        let before = self.waiting_bytes.fetch_add(bytes, Ordering::AcqRel);
        let fits = before == 0 || before.saturating_add(bytes) <= self.limit_bytes;
        if !fits {
            self.is_over.store(true, Ordering::Release);
        }
        fits
    }

    /// Weighs an event out.
    pub(crate) fn take(&self, event: &OutputEvent) {
        self.waiting_bytes
            .fetch_sub(weight(event), Ordering::AcqRel);
    }
}

/// About what an event takes in memory; the same before and after its way.
fn weight(event: &OutputEvent) -> usize {
    let scores = |scores: &TokenLogprobs| {
        let named = scores.named.as_ref();
        let num_named = named.map_or(0, |named| named.candidates.len());
        (scores.top_logprobs.len() + num_named) * size_of::<assay_engine::TopLogprob>()
    };
    let token = |output: &TokenOutput| output.logprobs.as_ref().map_or(0, scores);
    let inside: usize = match event {
        OutputEvent::Prompt { tokens } => tokens
            .iter()
            .map(|one| size_of_val(one) + scores(&one.logprobs))
            .sum(),
        OutputEvent::Delta { entries, .. } => entries
            .iter()
            .map(|one| size_of_val(one) + one.bytes.len() + one.text.len() + token(&one.output))
            .sum(),
        OutputEvent::Finished { end, .. } => end.as_ref().map_or(0, token),
        OutputEvent::Failed(_) => 0,
    };
    size_of::<PromptEvent>() + inside
}

/// One receiver for all prompts of a request, and a sink for each, in order.
pub(crate) fn output_channel<'a>(
    requests: impl Iterator<Item = (usize, &'a Request)>,
    wait: WaitTimer,
    backlog: &Arc<Backlog>,
) -> (Vec<ChannelSink>, mpsc::Receiver<PromptEvent>) {
    let requests: Vec<_> = requests.collect();
    let capacity = requests
        .iter()
        .map(|(_, request)| num_events(request))
        .fold(1, usize::saturating_add);
    let (sender, receiver) = mpsc::channel(capacity.min(tokio::sync::Semaphore::MAX_PERMITS));
    let wait = Arc::new(wait);
    let sinks = requests.iter().map(|&(prompt_index, _)| ChannelSink {
        sender: sender.clone(),
        prompt_index,
        wait: Arc::clone(&wait),
        backlog: Arc::clone(backlog),
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
        if !self.backlog.add(&event) {
            return Err(Gone);
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

    fn is_gone(&self) -> bool {
        self.sender.is_closed() || self.backlog.is_over()
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
