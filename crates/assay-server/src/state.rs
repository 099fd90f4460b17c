//! What all handlers share, and the way from a chat request to a reply under way.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use assay_api::openai::ChatCompletionRequest;
use assay_engine::{EngineHandle, EngineState, EngineStats, RequestId};
use assay_tokenizer::{ChatTemplate, Tokenizer};
use tokio::sync::Semaphore;

use crate::body::BodyBudget;
use crate::config::ServerConfig;
use crate::convert::request::{self, ModelLimits};
use crate::convert::response::{ReplyHead, ReplyNames};
use crate::error::{ApiError, SequenceRoom};
use crate::layers::auth::ApiKeys;
use crate::lifecycle::Lifecycle;
use crate::metrics::{Metrics, RequestTimer};
use crate::model_text::ModelText;
use crate::random::{random_seed, random_u64};
use crate::reply::Reply;
use crate::sink::output_channel;

/// Prompts rendered and tokenised at once; more would only fight for the engine's cores.
const NUM_TOKENIZERS: usize = 2;

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
    tokenizing: Arc<Semaphore>,
    next_request: AtomicU64,
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
            tokenizing: Arc::new(Semaphore::new(NUM_TOKENIZERS)),
            next_request: AtomicU64::new(0),
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

    pub(crate) fn metrics(&self) -> &Metrics {
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

    /// Hands a chat request to the engine.
    ///
    /// # Errors
    /// The request does not suit the model, or there is no place for it.
    pub(crate) async fn submit(&self, chat: ChatCompletionRequest) -> Result<Reply, ApiError> {
        let timer = RequestTimer::start(Arc::clone(&self.0.metrics));
        let Some(running) = self.0.lifecycle.begin() else {
            self.metrics().count_refused();
            return Err(ApiError::Draining);
        };
        let number = self.0.next_request.fetch_add(1, Ordering::Relaxed);
        let seed = chat.seed.unwrap_or_else(random_seed);
        let (chat, request) = self.tokenize(chat, RequestId(number), seed).await?;
        let names = ReplyNames {
            id: format!("chatcmpl-{:016x}{number:08x}", random_u64()),
            created: unix_seconds(),
            model: self.config().model_id.clone(),
            system_fingerprint: self.config().system_fingerprint.clone(),
            seed,
        };
        let head = ReplyHead::new(names, &chat, &request);
        let (sink, events) = output_channel(request.num_choices, request.max_tokens);
        let submitted = self.0.engine.submit(request, Box::new(sink));
        if let Err(error) = submitted {
            let error = ApiError::from(error);
            if matches!(error, ApiError::QueueFull | ApiError::Draining) {
                self.metrics().count_refused();
            }
            return Err(error);
        }
        Ok(Reply {
            app: self.clone(),
            head,
            events,
            timer,
            _running: running,
        })
    }

    /// Off the threads that serve connections, as it takes as long as the prompt is long.
    async fn tokenize(
        &self,
        chat: ChatCompletionRequest,
        id: RequestId,
        seed: i64,
    ) -> Result<(ChatCompletionRequest, assay_engine::Request), ApiError> {
        let info = self.0.engine.model_info();
        let limits = ModelLimits {
            room: SequenceRoom {
                num_tokens: self.context_length(),
                context_length: u32::try_from(info.full_context_length).unwrap_or(u32::MAX),
            },
            vocab_size: u32::try_from(info.vocab_size).unwrap_or(u32::MAX),
        };
        let text = Arc::clone(&self.0.text);
        let permit = Arc::clone(&self.0.tokenizing).acquire_owned().await;
        let built = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            request::build(id, &chat, seed, &text, limits).map(|request| (chat, request))
        });
        built
            .await
            .map_err(|error| ApiError::Internal(error.to_string()))?
    }
}

fn unix_seconds() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |elapsed| elapsed.as_secs())
}
