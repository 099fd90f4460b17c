//! The engine thread: takes arrivals, runs steps, parks when idle, and ends in order.

use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use assay_models::ForwardModel;
use thiserror::Error;

use crate::block_manager::PrefixCache;
use crate::engine_core::EngineCore;
use crate::handle::{Arrival, EngineHandle, EngineState, Shared};
use crate::observer::StepObserver;
use crate::row_cost;
use crate::scheduler::SchedulerConfig;
use crate::speculation::{DraftEffort, DraftModel, Drafter, Speculation};
use crate::token_bytes::TokenBytes;

/// Limits of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineConfig {
    /// Sequences in a forward pass at most; a decision counts as one, however many branches of it run.
    pub max_num_seqs: usize,
    /// Token rows in a forward pass at most; not below `max_num_seqs`. Rows far into a context count
    /// for more, and beside other sequences a long prompt takes a quarter: see [`crate::scheduler`].
    pub max_num_batched_tokens: usize,
    /// Rows of one prompt in a forward pass at most; `None` leaves it to the budget above.
    pub prefill_chunk: Option<NonZeroUsize>,
    /// Choices of requests that may wait for a first place in a batch.
    pub queue_limit: usize,
    /// Where drafts come from.
    pub speculation: Speculation,
    /// How readily drafts are made.
    pub draft_effort: DraftEffort,
    /// Whether computed blocks are kept and shared.
    pub prefix_cache: PrefixCache,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            max_num_seqs: 8,
            max_num_batched_tokens: 512,
            prefill_chunk: None,
            queue_limit: 1024,
            speculation: Speculation::default(),
            draft_effort: DraftEffort::default(),
            prefix_cache: PrefixCache::On,
        }
    }
}

/// Why an engine did not start.
#[derive(Debug, Error)]
pub enum SpawnError {
    /// A limit that no request could be served under.
    #[error("{field}: {reason}")]
    InvalidConfig {
        /// Which limit.
        field: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The operating system gave no thread.
    #[error("the engine thread did not start")]
    Thread(#[source] std::io::Error),
}

/// An engine is made by [`Engine::spawn`] and used through its handle.
#[derive(Debug)]
pub struct Engine;

impl Engine {
    /// Starts an engine over `model` on its own thread. `token_bytes` spells the model's tokens.
    ///
    /// # Errors
    /// [`SpawnError`]: a limit is out of range, or there is no thread.
    pub fn spawn(
        model: Box<dyn ForwardModel>,
        token_bytes: Arc<TokenBytes>,
        config: EngineConfig,
    ) -> Result<EngineHandle, SpawnError> {
        Self::spawn_with(model, None, token_bytes, config, None)
    }

    /// Starts an engine that drafts with a second model where the text itself holds no guess.
    ///
    /// # Errors
    /// As [`Engine::spawn`], and if the draft model's rows are not as wide as the model's. That its tokens are the
    /// same ones is the caller's to check.
    pub fn spawn_with_draft_model(
        model: Box<dyn ForwardModel>,
        draft_model: DraftModel,
        token_bytes: Arc<TokenBytes>,
        config: EngineConfig,
    ) -> Result<EngineHandle, SpawnError> {
        Self::spawn_with(model, Some(draft_model), token_bytes, config, None)
    }

    /// Starts an engine whose every step `observer` sees.
    ///
    /// # Errors
    /// As [`Engine::spawn_with_draft_model`].
    pub fn spawn_observed(
        model: Box<dyn ForwardModel>,
        draft_model: Option<DraftModel>,
        token_bytes: Arc<TokenBytes>,
        config: EngineConfig,
        observer: Box<dyn StepObserver>,
    ) -> Result<EngineHandle, SpawnError> {
        Self::spawn_with(model, draft_model, token_bytes, config, Some(observer))
    }

    fn spawn_with(
        model: Box<dyn ForwardModel>,
        draft_model: Option<DraftModel>,
        token_bytes: Arc<TokenBytes>,
        config: EngineConfig,
        observer: Option<Box<dyn StepObserver>>,
    ) -> Result<EngineHandle, SpawnError> {
        check_config(&config)?;
        if let Some(draft_model) = &draft_model {
            check_draft_model(model.as_ref(), draft_model)?;
        }
        let shared = Arc::new(Shared::new(
            model.info().clone(),
            Arc::clone(&token_bytes),
            config.queue_limit,
        ));
        let scheduler_config = SchedulerConfig {
            max_num_seqs: config.max_num_seqs,
            max_num_batched_tokens: config.max_num_batched_tokens,
            prefill_chunk: config.prefill_chunk,
            logits_cost: row_cost::of_logits(model.info().logits_cost),
            rows_at_once: match config.draft_effort {
                DraftEffort::Worthwhile => model.info().rows_at_once.max(1),
                DraftEffort::Always(_) => 1,
            },
        };
        let mut core = EngineCore::new(
            model,
            token_bytes,
            scheduler_config,
            Drafter::new(config.speculation, config.draft_effort, draft_model),
            config.prefix_cache,
            Arc::clone(&shared.progress),
        );
        core.observer = observer;
        let thread_shared = Arc::clone(&shared);
        thread::Builder::new()
            .name("assay-engine".to_owned())
            .spawn(move || run(core, &thread_shared))
            .map_err(SpawnError::Thread)?;
        Ok(EngineHandle::new(shared))
    }
}

fn check_draft_model(model: &dyn ForwardModel, draft_model: &DraftModel) -> Result<(), SpawnError> {
    let vocab_size = model.info().vocab_size;
    let draft_vocab_size = draft_model.model.info().vocab_size;
    if draft_vocab_size == vocab_size {
        return Ok(());
    }
    Err(SpawnError::InvalidConfig {
        field: "draft_model",
        reason: format!("it has {draft_vocab_size} tokens, the model {vocab_size}"),
    })
}

fn check_config(config: &EngineConfig) -> Result<(), SpawnError> {
    let limits = [
        ("max_num_seqs", config.max_num_seqs, 1),
        (
            "max_num_batched_tokens",
            config.max_num_batched_tokens,
            config.max_num_seqs,
        ),
        ("queue_limit", config.queue_limit, 1),
    ];
    for (field, value, least) in limits {
        if value < least {
            return Err(SpawnError::InvalidConfig {
                field,
                reason: format!("{value} is below {least}"),
            });
        }
    }
    Ok(())
}

/// The thread's body. A broken invariant ends the engine: its requests are told, it takes no more,
/// and nothing is tried again.
fn run(mut core: EngineCore, shared: &Shared) {
    let end = catch_unwind(AssertUnwindSafe(|| run_steps(&mut core, shared)));
    let state = match end {
        Ok(Ok(())) => EngineState::Stopped,
        Ok(Err(error)) => {
            tracing::error!(%error, "a forward pass failed; the engine has ended");
            EngineState::Dead
        }
        Err(_) => {
            tracing::error!("the engine thread panicked; the engine has ended");
            EngineState::Dead
        }
    };
    shared.refuse();
    core.fail_all();
    core.publish_stats();
    shared.end(state);
}

fn run_steps(core: &mut EngineCore, shared: &Shared) -> Result<(), assay_models::ForwardError> {
    loop {
        let (arrivals, state) = shared.take(core.has_work());
        for arrival in arrivals {
            match arrival {
                Arrival::Request(request, sink) => core.add(*request, sink),
                Arrival::Decision(plan, sink) => core.add_decision(plan, sink),
            }
        }
        match state {
            EngineState::Running => {}
            EngineState::Draining if core.has_work() => {}
            _ => return Ok(()),
        }
        core.step()?;
    }
}
