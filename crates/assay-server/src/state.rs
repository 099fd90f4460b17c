//! What all handlers share, and the way from a request to a reply under way.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use assay_api::openai::{GenerationParams, Tools};
use assay_engine::{
    EngineHandle, EngineState, EngineStats, OutputEvent, OutputSink, RequestId, SubmitError,
};
use assay_receipt::Identity;
use assay_tokenizer::{ChatTemplate, Tokenizer};
use tokio::sync::mpsc;

use crate::body::BodyBudget;
use crate::config::ServerConfig;
use crate::convert::decisions::prior_cache::PriorCache;
use crate::convert::reply_shape::ReplyNames;
use crate::convert::request::{ModelLimits, Work};
use crate::deadline::Deadline;
use crate::error::{ApiError, SequenceRoom};
use crate::layers::auth::ApiKeys;
use crate::lifecycle::Lifecycle;
use crate::metrics::{Metrics, RequestTimer, WaitTimer};
use crate::model_text::ModelText;
use crate::places::{TextPlaces, TextWork};
use crate::random::{random_seed, random_u64};
use crate::receipts::{ReceiptOrder, RecordedReply};
use crate::reply::{Events, PromptEvent, Reply};
use crate::sink::{Backlog, output_channel};

/// How a request's work is done and its reply delivered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) work: TextWork,
    pub(crate) delivery: Delivery,
}

/// How a reply goes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// Once it is whole.
    Whole,
    /// As it comes, at the client's pace.
    Streamed,
}

impl Terms {
    /// Those of a reply to `asked`, which may call `tools`.
    pub(crate) fn of(asked: &GenerationParams, tools: Option<&Tools>) -> Self {
        Self {
            work: TextWork::of(&asked.form, tools),
            delivery: match asked.stream {
                Some(_) => Delivery::Streamed,
                None => Delivery::Whole,
            },
        }
    }
}

/// What clients of the System One shape call the model unless told otherwise.
pub(crate) const SYSTEM_ONE_ALIAS: &str = "jev-latest";

/// The served model with all that requests share. Clones are the same server.
#[derive(Clone)]
pub struct AppState(Arc<Shared>);

struct Shared {
    engine: EngineHandle,
    text: Arc<ModelText>,
    config: ServerConfig,
    keys: ApiKeys,
    metrics: Arc<Metrics>,
    lifecycle: Lifecycle,
    body_budget: BodyBudget,
    places: TextPlaces,
    priors: PriorCache,
    identity: Arc<Identity>,
    system_fingerprint: String,
    next_request: AtomicU64,
    next_reply: AtomicU64,
}

impl fmt::Debug for AppState {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        // The configuration holds keys.
        let model_id = &self.0.config.model_id;
        formatter
            .debug_struct("AppState")
            .field("model_id", model_id)
            .finish_non_exhaustive()
    }
}

impl AppState {
    /// A server of the model that `engine` runs; without a template it refuses chats.
    pub fn new(
        engine: EngineHandle,
        tokenizer: Arc<Tokenizer>,
        template: Option<ChatTemplate>,
        config: ServerConfig,
    ) -> Self {
        Self(Arc::new(Shared {
            engine,
            text: Arc::new(ModelText::new(tokenizer, template, &config)),
            keys: ApiKeys::new(&config.api_keys),
            metrics: Arc::new(Metrics::new(&config.model_id)),
            lifecycle: Lifecycle::new(),
            body_budget: BodyBudget::new(config.limits.all_bodies_bytes),
            places: TextPlaces::new(),
            priors: PriorCache::default(),
            system_fingerprint: config.identity.fingerprint(),
            identity: Arc::new(config.identity.clone()),
            next_request: AtomicU64::new(0),
            next_reply: AtomicU64::new(0),
            config,
        }))
    }

    pub(crate) fn config(&self) -> &ServerConfig {
        &self.0.config
    }

    pub(crate) fn keys(&self) -> &ApiKeys {
        &self.0.keys
    }

    pub(crate) fn body_budget(&self) -> &BodyBudget {
        &self.0.body_budget
    }

    pub(crate) fn text(&self) -> &ModelText {
        &self.0.text
    }

    pub(crate) fn priors(&self) -> &PriorCache {
        &self.0.priors
    }

    pub(crate) fn identity(&self) -> &Arc<Identity> {
        &self.0.identity
    }

    pub(crate) fn system_fingerprint(&self) -> &str {
        &self.0.system_fingerprint
    }

    pub(crate) fn engine(&self) -> &EngineHandle {
        &self.0.engine
    }

    pub(crate) fn lifecycle(&self) -> &Lifecycle {
        &self.0.lifecycle
    }

    pub(crate) fn metrics(&self) -> &Arc<Metrics> {
        &self.0.metrics
    }

    pub(crate) fn engine_stats(&self) -> EngineStats {
        self.0.engine.stats()
    }

    pub(crate) fn engine_is_alive(&self) -> bool {
        match self.0.engine.state() {
            EngineState::Running | EngineState::Draining => true,
            EngineState::Stopping | EngineState::Stopped | EngineState::Dead => false,
        }
    }

    pub(crate) fn stop_engine(&self) {
        self.0.engine.stop();
    }

    pub(crate) fn start_draining(&self) {
        self.0.lifecycle.start_draining();
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.0.lifecycle.is_draining()
    }

    /// Why a reply broke off: an engine that stops while the server drains did not fail.
    pub(crate) fn cause(&self, error: ApiError) -> ApiError {
        match error {
            ApiError::EngineStopped if self.is_draining() => ApiError::CutOff,
            error => error,
        }
    }

    pub(crate) async fn idle(&self) {
        self.0.lifecycle.idle().await;
    }

    /// When a request whose last byte came at `received` must be through.
    pub(crate) fn deadline(&self, received: Instant) -> Deadline {
        Deadline::after(received, self.config().request_timeout)
    }

    /// Longest prompt and reply together, in tokens.
    pub(crate) fn context_length(&self) -> u32 {
        u32::try_from(self.0.engine.max_sequence_tokens()).unwrap_or(u32::MAX)
    }

    /// Refuses names of other models; no name is the served model.
    pub(crate) fn check_model(&self, name: Option<&str>) -> Result<(), ApiError> {
        let config = self.config();
        let known = |name: &str| {
            config.any_model_name
                || name == config.model_id
                || name == "default"
                || name == SYSTEM_ONE_ALIAS
                || config.aliases.iter().any(|alias| alias == name)
        };
        match name {
            Some(name) if !known(name) => Err(ApiError::UnknownModel {
                name: assay_api::json::quote(name),
                served: config.model_id.clone(),
            }),
            _ => Ok(()),
        }
    }

    /// Names of a reply whose id begins with `kind`, for a request that named `seed` or left it to us.
    pub(crate) fn reply_names(&self, kind: &str, seed: Option<i64>) -> ReplyNames {
        let number = self.0.next_reply.fetch_add(1, Ordering::Relaxed);
        ReplyNames {
            id: format!("{kind}-{:016x}{number:08x}", random_u64()),
            created: unix_seconds(),
            model: self.config().model_id.clone(),
            system_fingerprint: self.0.system_fingerprint.clone(),
            seed: seed.unwrap_or_else(random_seed),
        }
    }

    /// Makes a request's work, one piece for each prompt, and hands it to the engine: all of it or none. The request's
    /// time runs from `received`; where there is an order, what the engine says is recorded for its receipt.
    ///
    /// # Errors
    /// The request does not suit the model, or there is no place for it.
    pub(crate) async fn submit<T, B>(
        &self,
        received: Instant,
        terms: Terms,
        receipt: Option<ReceiptOrder>,
        build: B,
    ) -> Result<(T, Reply), ApiError>
    where
        T: Send + 'static,
        B: FnOnce(&Arc<ModelText>, ModelLimits) -> Result<(T, Vec<Work>), ApiError>
            + Send
            + 'static,
    {
        let timer = RequestTimer::start(Arc::clone(&self.0.metrics), received);
        let Some(running) = self.0.lifecycle.begin() else {
            self.metrics().count_refused();
            return Err(ApiError::Draining);
        };
        let deadline = self.deadline(received);
        let built = deadline.bound(self.with_text(terms.work, build)).await?;
        let (built, work) = built?;
        let num_prompts = work.len();
        let num_choices = work.iter().map(|work| work.num_choices() as usize).sum();
        let backlog = Arc::new(match terms.delivery {
            Delivery::Whole => Backlog::unbounded(),
            Delivery::Streamed => Backlog::new(self.config().limits.backlog_bytes),
        });
        let mut recorded = receipt.map(RecordedReply::new);
        let (events, ready) = self.hand_over(work, timer.wait(), recorded.as_mut(), &backlog)?;
        let events = Events {
            ready,
            coming: events,
            backlog,
            deadline,
        };
        let counts = (num_prompts, num_choices);
        let reply = Reply::new(self.clone(), events, counts, timer, running);
        Ok((built, reply.with_receipt(recorded)))
    }

    /// Events to come, and those that need no engine.
    fn hand_over(
        &self,
        work: Vec<Work>,
        wait: WaitTimer,
        mut recorded: Option<&mut RecordedReply>,
        backlog: &Arc<Backlog>,
    ) -> Result<(mpsc::Receiver<PromptEvent>, VecDeque<PromptEvent>), ApiError> {
        let mut requests = Vec::new();
        let mut ready = VecDeque::new();
        for (prompt_index, work) in work.into_iter().enumerate() {
            match work {
                Work::Engine(mut request) => {
                    let trace = recorded
                        .as_mut()
                        .map(|recorded| recorded.trace(&mut request));
                    let number = self.0.next_request.fetch_add(1, Ordering::Relaxed);
                    let id = RequestId(number);
                    let request = assay_engine::Request { id, ..*request };
                    requests.push((prompt_index, request, trace));
                }
                Work::Nothing { prompt_tokens } => ready.push_back(PromptEvent {
                    prompt_index,
                    event: nothing(prompt_tokens),
                }),
            }
        }
        let borrowed = requests
            .iter()
            .map(|(index, request, trace)| (*index, request, trace.clone()));
        let (sinks, events) = output_channel(borrowed, wait, backlog);
        let with_sinks = std::iter::zip(requests, sinks)
            .map(|((_, request, _), sink)| (request, Box::new(sink) as Box<dyn OutputSink>));
        if let Err(error) = self.0.engine.submit_all(with_sinks.collect()) {
            return Err(self.not_taken(error));
        }
        Ok((events, ready))
    }

    /// Why the engine did not take work, counted where it is for want of room.
    pub(crate) fn not_taken(&self, error: SubmitError) -> ApiError {
        let error = ApiError::from(error);
        if matches!(error, ApiError::QueueFull | ApiError::Draining) {
            self.metrics().count_refused();
        }
        error
    }

    /// Runs `work` on the model's words off the threads that serve connections, as it takes as long as its
    /// text is long.
    pub(crate) async fn with_text<T, B>(&self, work: TextWork, build: B) -> Result<T, ApiError>
    where
        T: Send + 'static,
        B: FnOnce(&Arc<ModelText>, ModelLimits) -> Result<T, ApiError> + Send + 'static,
    {
        let limits = self.limits();
        let text = Arc::clone(&self.0.text);
        let permit = self.0.places.take(work).await;
        let built = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            build(&text, limits)
        });
        built
            .await
            .map_err(|error| ApiError::Internal(error.to_string()))?
    }

    fn limits(&self) -> ModelLimits {
        let info = self.0.engine.model_info();
        ModelLimits {
            room: SequenceRoom {
                num_tokens: self.context_length(),
                context_length: u32::try_from(info.full_context_length).unwrap_or(u32::MAX),
            },
            vocab_size: u32::try_from(info.vocab_size).unwrap_or(u32::MAX),
            max_trie_edges: self.config().limits.max_trie_edges,
        }
    }
}

/// The end of a choice for which nothing is to be done.
fn nothing(prompt_tokens: u32) -> OutputEvent {
    OutputEvent::Finished {
        choice_index: 0,
        reason: assay_engine::FinishReason::Length,
        end: None,
        usage: assay_engine::Usage {
            prompt_tokens,
            ..assay_engine::Usage::default()
        },
    }
}

fn unix_seconds() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |elapsed| elapsed.as_secs())
}
