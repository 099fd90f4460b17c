//! One request under way: its events, how many choices are still to come, and how long it takes.

use std::collections::VecDeque;

use assay_engine::OutputEvent;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::convert::reply_shape::ReplyShape;
use crate::convert::usage::UsageTotal;
use crate::error::ApiError;
use crate::lifecycle::Running;
use crate::metrics::RequestTimer;
use crate::receipts::RecordedReply;
use crate::state::AppState;

/// An event, and the prompt of the request that it belongs to.
#[derive(Debug)]
pub(crate) struct PromptEvent {
    pub(crate) prompt_index: usize,
    pub(crate) event: OutputEvent,
}

/// Dropped before its end, it is a client that has gone: the engine frees the request's slots.
pub(crate) struct Reply {
    app: AppState,
    events: mpsc::Receiver<PromptEvent>,
    /// Events that need no engine; they come first.
    ready: VecDeque<PromptEvent>,
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
        events: mpsc::Receiver<PromptEvent>,
        ready: VecDeque<PromptEvent>,
        (num_prompts, num_choices): (usize, usize),
        timer: RequestTimer,
        running: Running,
    ) -> Self {
        Self {
            app,
            events,
            ready,
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
    /// The request failed, or the engine went away. Cancelling the wait loses nothing.
    pub(crate) async fn next(&mut self) -> Result<PromptEvent, ApiError> {
        let event = match self.ready.pop_front() {
            Some(event) => event,
            None => {
                let event = self.events.recv().await;
                event.ok_or_else(|| self.app.cause(ApiError::EngineStopped))?
            }
        };
        self.book(event)
    }

    /// The next event, if it is there already.
    pub(crate) fn try_next(&mut self) -> Option<Result<PromptEvent, ApiError>> {
        let ready = self.ready.pop_front();
        let event = ready.or_else(|| self.events.try_recv().ok())?;
        Some(self.book(event))
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
        while !self.is_finished() {
            let event = self.next().await?;
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
