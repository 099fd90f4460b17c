//! The door to a running engine: submit, look, drain, stop. Every call returns at once.
//!
//! Caller and engine thread share an inbox and a statistics board, nothing else.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use assay_models::ModelInfo;
use thiserror::Error;

use crate::decision::plan::Plan;
use crate::decision::{DecideError, DecisionRequest, DecisionSink, InvalidDecision};
use crate::output::{OutputEvent, OutputSink, RequestError};
use crate::request::{InvalidRequest, Request};
use crate::stats::EngineStats;
use crate::token_bytes::TokenBytes;

/// What the engine thread does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineState {
    /// Takes requests.
    Running,
    /// Takes none and finishes what it has.
    Draining,
    /// Takes none and ends after the present step.
    Stopping,
    /// Has ended in order.
    Stopped,
    /// Has ended by a broken invariant; every request it had was told.
    Dead,
}

/// Why a request was not taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SubmitError {
    /// A field is out of its range.
    #[error(transparent)]
    Invalid(#[from] InvalidRequest),
    /// Prompt and reply together pass what one sequence can hold.
    #[error(
        "{prompt_tokens} prompt tokens and {max_tokens} to generate pass the limit of {limit_tokens}"
    )]
    TooLong {
        /// Tokens of the prompt.
        prompt_tokens: usize,
        /// Tokens to generate.
        max_tokens: usize,
        /// The context, or the whole KV pool where that is smaller.
        limit_tokens: usize,
    },
    /// As many choices wait as may; a request is taken or refused with all of its own.
    #[error("the queue is full: {queue_limit} replies wait")]
    QueueFull {
        /// Choices that may wait.
        queue_limit: usize,
    },
    /// The engine finishes what it has and takes no more.
    #[error("the engine is draining")]
    Draining,
    /// The engine has ended.
    #[error("the engine has stopped")]
    Stopped,
}

/// What was submitted, with the place its events go.
pub(crate) enum Arrival {
    Request(Box<Request>, Box<dyn OutputSink>),
    Decision(Box<Plan>, Box<dyn DecisionSink>),
}

impl Arrival {
    /// Places in the queue.
    fn num_choices(&self) -> usize {
        match self {
            Self::Request(request, _) => request.num_choices as usize,
            Self::Decision(..) => 1,
        }
    }

    /// Tells the client that the engine ended. One that has gone as well needs no word.
    fn refuse(self) {
        match self {
            Self::Request(_, mut sink) => {
                let _ = sink.send(OutputEvent::Failed(RequestError::EngineStopped));
            }
            Self::Decision(_, mut sink) => sink.send(Err(RequestError::EngineStopped)),
        }
    }
}

/// What the engine thread tells: statistics, and how many choices wait for a first place.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    stats: Mutex<EngineStats>,
    num_queued: AtomicUsize,
}

impl Progress {
    pub(crate) fn publish(&self, stats: EngineStats, num_queued: usize) {
        *locked(&self.stats) = stats;
        self.num_queued.store(num_queued, Ordering::Release);
    }
}

struct Inbox {
    arrivals: Vec<Arrival>,
    state: EngineState,
}

impl Inbox {
    fn num_choices(&self) -> usize {
        self.arrivals.iter().map(Arrival::num_choices).sum()
    }
}

/// What caller and engine thread share.
pub(crate) struct Shared {
    inbox: Mutex<Inbox>,
    /// Signalled when the inbox changes, in either direction.
    changed: Condvar,
    pub(crate) progress: Arc<Progress>,
    info: ModelInfo,
    token_bytes: Arc<TokenBytes>,
    queue_limit: usize,
}

impl Shared {
    pub(crate) fn new(info: ModelInfo, token_bytes: Arc<TokenBytes>, queue_limit: usize) -> Self {
        Self {
            inbox: Mutex::new(Inbox {
                arrivals: Vec::new(),
                state: EngineState::Running,
            }),
            changed: Condvar::new(),
            progress: Arc::default(),
            info,
            token_bytes,
            queue_limit,
        }
    }

    /// Takes all arrivals and the state. With nothing else to do, parks until there is some.
    pub(crate) fn take(&self, has_work: bool) -> (Vec<Arrival>, EngineState) {
        let mut inbox = locked(&self.inbox);
        while !has_work && inbox.arrivals.is_empty() && inbox.state == EngineState::Running {
            inbox = self
                .changed
                .wait(inbox)
                .unwrap_or_else(PoisonError::into_inner);
        }
        let num_choices = inbox.num_choices();
        let arrivals = std::mem::take(&mut inbox.arrivals);
        // Under the inbox lock: a submit sees each of them either here or there.
        self.progress
            .num_queued
            .fetch_add(num_choices, Ordering::AcqRel);
        (arrivals, inbox.state)
    }

    /// Takes no more requests, whatever the state was.
    pub(crate) fn refuse(&self) {
        self.request_state(EngineState::Stopping);
    }

    /// The engine thread's last word; tells arrivals that nobody took.
    pub(crate) fn end(&self, state: EngineState) {
        let arrivals = {
            let mut inbox = locked(&self.inbox);
            inbox.state = state;
            std::mem::take(&mut inbox.arrivals)
        };
        for arrival in arrivals {
            arrival.refuse();
        }
        self.changed.notify_all();
    }

    fn request_state(&self, state: EngineState) {
        let mut inbox = locked(&self.inbox);
        let may_change = match inbox.state {
            EngineState::Running => true,
            EngineState::Draining => state == EngineState::Stopping,
            EngineState::Stopping | EngineState::Stopped | EngineState::Dead => false,
        };
        if may_change {
            inbox.state = state;
            self.changed.notify_all();
        }
    }
}

/// Ends the engine thread when the last handle goes.
struct LastHandle(Arc<Shared>);

impl Drop for LastHandle {
    fn drop(&mut self) {
        self.0.request_state(EngineState::Stopping);
    }
}

/// A running engine; clones are the same engine. The engine stops when the last clone is dropped.
#[derive(Clone)]
pub struct EngineHandle {
    last_handle: Arc<LastHandle>,
}

impl EngineHandle {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            last_handle: Arc::new(LastHandle(shared)),
        }
    }

    /// Queues a request; its events go to `sink`, from the engine's thread.
    ///
    /// # Errors
    /// [`SubmitError`]; the request then has no effect and the sink no event.
    pub fn submit(&self, request: Request, sink: Box<dyn OutputSink>) -> Result<(), SubmitError> {
        self.submit_all(vec![(request, sink)])
    }

    /// Queues requests that belong together: all are taken, in order, or none.
    ///
    /// # Errors
    /// [`SubmitError`], of the first that cannot be taken; none has an effect then.
    pub fn submit_all(
        &self,
        requests: Vec<(Request, Box<dyn OutputSink>)>,
    ) -> Result<(), SubmitError> {
        let shared = self.shared();
        for (request, _) in &requests {
            request.validate(&shared.info)?;
            self.check_length(request.prompt_token_ids.len(), request.max_tokens as usize)?;
        }
        let arrivals = requests.into_iter();
        self.enqueue(arrivals.map(|(request, sink)| Arrival::Request(Box::new(request), sink)))
    }

    fn enqueue(&self, arrivals: impl Iterator<Item = Arrival>) -> Result<(), SubmitError> {
        let shared = self.shared();
        let mut inbox = locked(&shared.inbox);
        match inbox.state {
            EngineState::Running => {}
            EngineState::Draining => return Err(SubmitError::Draining),
            EngineState::Stopping | EngineState::Stopped | EngineState::Dead => {
                return Err(SubmitError::Stopped);
            }
        }
        let num_queued = inbox.num_choices() + shared.progress.num_queued.load(Ordering::Acquire);
        if num_queued >= shared.queue_limit {
            return Err(SubmitError::QueueFull {
                queue_limit: shared.queue_limit,
            });
        }
        inbox.arrivals.extend(arrivals);
        shared.changed.notify_all();
        Ok(())
    }

    /// Queues a decision; its outcome goes to `sink`, from the engine's thread. In the queue and in a batch it takes the
    /// place of one choice.
    ///
    /// # Errors
    /// [`DecideError`]; the request then has no effect and the sink no outcome.
    pub fn decide(
        &self,
        request: DecisionRequest,
        sink: Box<dyn DecisionSink>,
    ) -> Result<(), DecideError> {
        let shared = self.shared();
        let plan = Plan::new(&request, &shared.info, &shared.token_bytes)?;
        self.check_path(&plan)?;
        Ok(self.enqueue([Arrival::Decision(Box::new(plan), sink)].into_iter())?)
    }

    /// Whether the decision's longest path fits the context, and its dearest the pool.
    fn check_path(&self, plan: &Plan) -> Result<(), InvalidDecision> {
        let info = self.model_info();
        let num_blocks = plan.blocks_of_dearest_path(info.kv_block_tokens);
        let num_tokens = plan.longest_path();
        let limit_tokens = self.max_sequence_tokens();
        let num_lacking = num_blocks.saturating_sub(info.num_kv_blocks);
        if num_tokens <= limit_tokens && num_lacking == 0 {
            return Ok(());
        }
        let room = num_tokens.saturating_sub(num_lacking * info.kv_block_tokens);
        Err(InvalidDecision::TooLong {
            num_tokens,
            limit_tokens: limit_tokens.min(room),
        })
    }

    /// Tokens that prompt and reply together may have: the context, or the pool if that is smaller.
    pub fn max_sequence_tokens(&self) -> usize {
        let info = self.model_info();
        info.context_length
            .min(info.num_kv_blocks.saturating_mul(info.kv_block_tokens))
    }

    /// Facts about the model.
    pub fn model_info(&self) -> &ModelInfo {
        &self.shared().info
    }

    /// The latest statistics. Requests in the inbox count as waiting.
    pub fn stats(&self) -> EngineStats {
        let inbox = locked(&self.shared().inbox);
        let stats = *locked(&self.shared().progress.stats);
        EngineStats {
            num_waiting: stats.num_waiting + inbox.num_choices(),
            ..stats
        }
    }

    /// What the engine thread does now.
    pub fn state(&self) -> EngineState {
        locked(&self.shared().inbox).state
    }

    /// Takes no more requests and finishes those it has; the state becomes `Stopped` then.
    pub fn drain(&self) {
        self.shared().request_state(EngineState::Draining);
    }

    /// Ends after the present step; unfinished requests fail with `EngineStopped`.
    pub fn stop(&self) {
        self.shared().request_state(EngineState::Stopping);
    }

    /// Blocks until the engine thread has ended, or `timeout`; whether it has.
    pub fn wait_stopped(&self, timeout: Duration) -> bool {
        let inbox = locked(&self.shared().inbox);
        let has_ended =
            |inbox: &Inbox| matches!(inbox.state, EngineState::Stopped | EngineState::Dead);
        let (inbox, _) = self
            .shared()
            .changed
            .wait_timeout_while(inbox, timeout, |inbox| !has_ended(inbox))
            .unwrap_or_else(PoisonError::into_inner);
        has_ended(&inbox)
    }

    fn check_length(&self, prompt_tokens: usize, max_tokens: usize) -> Result<(), SubmitError> {
        let limit_tokens = self.max_sequence_tokens();
        match prompt_tokens.checked_add(max_tokens) {
            Some(num_tokens) if num_tokens <= limit_tokens => Ok(()),
            _ => Err(SubmitError::TooLong {
                prompt_tokens,
                max_tokens,
                limit_tokens,
            }),
        }
    }

    fn shared(&self) -> &Shared {
        &self.last_handle.0
    }
}

/// The lock, also after a panic elsewhere: what it guards is replaced whole, never half.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
