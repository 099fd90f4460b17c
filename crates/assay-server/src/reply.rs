//! One request under way: its events, how many choices are still to come, and how long it takes.

use std::collections::VecDeque;
use std::sync::Arc;

use assay_engine::{OutputEvent, TokenLogprobs};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::convert::reply_shape::ReplyShape;
use crate::convert::usage::UsageTotal;
use crate::deadline::Deadline;
use crate::error::ApiError;
use crate::lifecycle::Running;
use crate::metrics::RequestTimer;
use crate::receipts::RecordedReply;
use crate::sink::Backlog;
use crate::state::AppState;

/// Scores that a reply which is kept until it is whole may hold: about 250 MB in the widest shape. What would pass it by
/// its own `max_tokens` is refused before any work.
pub(crate) const MAX_REPLY_SCORES: usize = 1 << 21;

/// An event, and the prompt of the request that it belongs to.
#[derive(Debug)]
pub(crate) struct PromptEvent {
    pub(crate) prompt_index: usize,
    pub(crate) event: OutputEvent,
}

/// Where a reply's events come from.
#[derive(Debug)]
pub(crate) struct Events {
    /// Those that need no engine; they come first.
    pub(crate) ready: VecDeque<PromptEvent>,
    pub(crate) coming: mpsc::Receiver<PromptEvent>,
    pub(crate) backlog: Arc<Backlog>,
    pub(crate) deadline: Deadline,
}

impl Events {
    /// `None` after the last.
    async fn next(&mut self) -> Option<PromptEvent> {
        if let Some(event) = self.ready.pop_front() {
            return Some(event);
        }
        let event = self.coming.recv().await?;
        self.backlog.take(&event.event);
        Some(event)
    }

    /// The next one, if it is there already.
    fn try_next(&mut self) -> Option<PromptEvent> {
        if let Some(event) = self.ready.pop_front() {
            return Some(event);
        }
        let event = self.coming.try_recv().ok()?;
        self.backlog.take(&event.event);
        Some(event)
    }
}

/// Dropped before its end, it is a client that has gone: the engine frees the request's slots.
pub(crate) struct Reply {
    app: AppState,
    events: Events,
    num_unfinished: usize,
    usage: UsageTotal,
    timer: RequestTimer,
    receipt: Option<RecordedReply>,
    /// Held until the last byte was handed over; a draining server waits for it.
    _running: Running,
}

impl Reply {
    /// A reply of `num_choices` choices to `num_prompts` prompts.
    pub(crate) fn new(
        app: AppState,
        events: Events,
        (num_prompts, num_choices): (usize, usize),
        timer: RequestTimer,
        running: Running,
    ) -> Self {
        Self {
            app,
            events,
            num_unfinished: num_choices,
            usage: UsageTotal::new(num_prompts),
            timer,
            receipt: None,
            _running: running,
        }
    }

    /// The same, with what its receipt is made of.
    pub(crate) fn with_receipt(self, receipt: Option<RecordedReply>) -> Self {
        Self { receipt, ..self }
    }

    /// The receipt of a finished reply, where the client gets it; in the ledger where there is one.
    ///
    /// # Errors
    /// The ledger was not written: the reply must not end as if it were.
    pub(crate) async fn issue_receipt(&mut self) -> Result<Option<Value>, ApiError> {
        match self.receipt.take() {
            Some(receipt) => receipt.issue(&self.app).await,
            None => Ok(None),
        }
    }

    /// Whether every choice has finished.
    pub(crate) fn is_finished(&self) -> bool {
        self.num_unfinished == 0
    }

    /// The next event, which is never a failure.
    ///
    /// # Errors
    /// The request failed, its time is over, or the engine went away. Cancelling the wait loses nothing.
    pub(crate) async fn next(&mut self) -> Result<PromptEvent, ApiError> {
        let deadline = self.events.deadline;
        let event = deadline.bound(self.events.next()).await?;
        self.book(event.ok_or_else(|| self.broken_off())?)
    }

    /// The next event, if it is there already.
    pub(crate) fn try_next(&mut self) -> Option<Result<PromptEvent, ApiError>> {
        let event = self.events.try_next()?;
        Some(self.book(event))
    }

    /// Why no event comes any more.
    fn broken_off(&self) -> ApiError {
        let backlog = &self.events.backlog;
        if backlog.is_over() {
            return ApiError::ReadTooSlowly {
                limit_bytes: backlog.limit_bytes(),
            };
        }
        self.app.cause(ApiError::EngineStopped)
    }

    fn book(&mut self, event: PromptEvent) -> Result<PromptEvent, ApiError> {
        match &event.event {
            OutputEvent::Delta { .. } => self.timer.text(),
            OutputEvent::Finished { usage, .. } => {
                self.usage.add(event.prompt_index, *usage);
                self.num_unfinished = self.num_unfinished.saturating_sub(1);
            }
            OutputEvent::Prompt { .. } => {}
            OutputEvent::Failed(error) => return Err(self.app.cause(error.clone().into())),
        }
        Ok(event)
    }

    /// The counts of a finished reply, which ends its time.
    pub(crate) fn complete(&mut self) -> assay_api::openai::Usage {
        self.timer.completed();
        self.usage.usage()
    }

    /// Waits for the whole reply.
    pub(crate) async fn collect<S: ReplyShape>(
        mut self,
        mut shape: S,
    ) -> Result<S::Whole, ApiError> {
        let mut num_scores = 0;
        while !self.is_finished() {
            let event = self.next().await?;
            num_scores += scores_of(&event.event);
            if num_scores > MAX_REPLY_SCORES {
                return Err(ApiError::TooManyScores {
                    limit: MAX_REPLY_SCORES,
                });
            }
            shape.add(event)?;
        }
        if let Some(receipt) = self.issue_receipt().await? {
            shape.receive_receipt(receipt);
        }
        let usage = self.usage.usage();
        let whole = shape.whole(usage)?;
        self.complete();
        Ok(whole)
    }
}

/// Scores that an event brings.
fn scores_of(event: &OutputEvent) -> usize {
    let count = |scores: &TokenLogprobs| {
        let named = scores.named.as_ref();
        1 + scores.top_logprobs.len() + named.map_or(0, |named| named.candidates.len())
    };
    match event {
        OutputEvent::Prompt { tokens } => tokens.iter().map(|one| count(&one.logprobs)).sum(),
        OutputEvent::Delta { entries, .. } => entries
            .iter()
            .filter_map(|entry| entry.output.logprobs.as_ref())
            .map(count)
            .sum(),
        OutputEvent::Finished { .. } | OutputEvent::Failed(_) => 0,
    }
}
