//! An engine under watch: started as told, fed, stopped, and asked for what it leaves behind.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use assay_engine::decision::{DecideError, DecisionRequest};
use assay_engine::sequence::SeqId;
use assay_engine::{
    DraftEffort, DraftModel, Engine, EngineConfig, EngineHandle, EngineStats, PrefixCache, Request,
    Speculation, SubmitError,
};
use assay_models::ForwardModel;

use crate::client::Client;
use crate::decisions::Asker;
use crate::erring::Erring;
use crate::mutant::{Mutant, Mutation};
use crate::subject::{KV_BLOCKS, Subject, Use, Weights};
use crate::watch::{Record, Totals, Watch};

/// Longest wait for an engine to end, or for a step to come.
const PATIENCE: Duration = Duration::from_secs(600);

/// Where an engine's drafts come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Drafts {
    /// None.
    Off,
    /// The text itself.
    Ngram,
    /// A second model, which errs now and then.
    Model,
    /// The text, and the model where it says nothing.
    Both,
}

/// How an engine is set up.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Threads of the model.
    pub threads: NonZeroUsize,
    /// Whose weights and slots it starts with.
    pub weights: Weights,
    /// What they are lent for.
    pub use_: Use,
    /// Drafts.
    pub drafts: Drafts,
    /// KV blocks that it is told of.
    pub num_kv_blocks: usize,
    /// A fault that the model has on purpose.
    pub mutation: Option<Mutation>,
    /// Its limits.
    pub config: EngineConfig,
}

/// An engine and its watch.
pub struct Rig {
    /// The engine's door.
    pub engine: EngineHandle,
    watch: Watch,
    num_submitted: u64,
}

/// What an engine left behind.
#[derive(Clone, Debug)]
pub struct Remains {
    /// Its last counters.
    pub stats: EngineStats,
    /// Sums over its steps.
    pub totals: Totals,
    /// Blocks that nobody held and nobody freed.
    pub num_leaked_blocks: usize,
    /// What the naive model found wrong: the first of it.
    pub faults: Vec<String>,
}

impl Setup {
    /// The reference's: alone, nothing kept, no drafts, one thread, whole prompts.
    pub fn reference() -> Self {
        Self {
            threads: NonZeroUsize::MIN,
            weights: Weights::Kept,
            use_: Use::Reference,
            drafts: Drafts::Off,
            num_kv_blocks: KV_BLOCKS,
            mutation: None,
            config: EngineConfig {
                max_num_seqs: 1,
                max_num_batched_tokens: 16_384,
                prefix_cache: PrefixCache::Off,
                speculation: Speculation::Off,
                ..EngineConfig::default()
            },
        }
    }
}

impl Rig {
    /// Starts an engine on `subject`.
    ///
    /// # Errors
    /// The weights cannot be had, or the engine does not start.
    pub fn start(subject: &Arc<Subject>, setup: &Setup) -> Result<Self> {
        let lend = |use_, num_blocks| subject.lend(use_, setup.threads, setup.weights, num_blocks);
        let model = lend(setup.use_, setup.num_kv_blocks)?;
        let draft_model = match setup.drafts {
            Drafts::Off | Drafts::Ngram => None,
            Drafts::Model | Drafts::Both => Some(DraftModel {
                model: Box::new(Erring::new(lend(Use::Draft, KV_BLOCKS)?)),
                // Never so dear that nothing is drafted.
                relative_cost: 0.01,
            }),
        };
        let config = EngineConfig {
            speculation: match setup.drafts {
                Drafts::Off | Drafts::Model => Speculation::Off,
                Drafts::Ngram | Drafts::Both => Speculation::Ngram,
            },
            ..setup.config
        };
        let watch = Watch::default();
        let model: Box<dyn ForwardModel> = match setup.mutation {
            None => Box::new(model),
            Some(mutation) => Box::new(Mutant::new(model, mutation)),
        };
        let engine = Engine::spawn_observed(
            model,
            draft_model,
            Arc::clone(&subject.token_bytes),
            config,
            watch.observer(),
        )?;
        Ok(Self {
            engine,
            watch,
            num_submitted: 0,
        })
    }

    /// Hands a request over; the name of its first sequence, and its client.
    ///
    /// # Errors
    /// The engine's refusal.
    pub fn submit(&mut self, request: Request) -> Result<(SeqId, Client), SubmitError> {
        let client = Client::submit(&self.engine, request)?;
        let seq_id = SeqId {
            arrival: self.num_submitted,
            choice_index: 0,
        };
        self.num_submitted += 1;
        Ok((seq_id, client))
    }

    /// Hands a decision over.
    ///
    /// # Errors
    /// The engine's refusal.
    pub fn decide(&mut self, request: DecisionRequest) -> Result<Asker, DecideError> {
        let asker = Asker::ask(&self.engine, request)?;
        self.num_submitted += 1;
        Ok(asker)
    }

    /// Holds the engine inside the step of `opener`, so that all that is submitted until [`Rig::release`] arrives at
    /// once.
    ///
    /// # Errors
    /// No step came.
    pub fn hold_with(&mut self, opener: Request) -> Result<Client> {
        self.watch.hold();
        let (_, client) = self.submit(opener)?;
        if !self.watch.wait_held(PATIENCE) {
            bail!("the engine takes no step");
        }
        Ok(client)
    }

    /// Lets a held engine go on.
    pub fn release(&self) {
        self.watch.release();
    }

    /// What happened to a sequence.
    pub fn record(&self, seq_id: SeqId) -> Record {
        self.watch.record(seq_id)
    }

    /// The watch itself.
    pub fn watch(&self) -> &Watch {
        &self.watch
    }

    /// Finishes what is running, then ends the engine.
    ///
    /// # Errors
    /// It does not end.
    pub fn stop(self) -> Result<Remains> {
        self.engine.drain();
        if !self.engine.wait_stopped(PATIENCE) {
            return Err(anyhow!(
                "the engine does not end: {:?}",
                self.engine.stats()
            ));
        }
        let stats = self.engine.stats();
        Ok(Remains {
            stats,
            totals: self.watch.totals(),
            num_leaked_blocks: stats.num_kv_blocks_used,
            faults: self.watch.faults(),
        })
    }
}

/// The effort that makes drafts whatever they cost.
pub fn always(num_tokens: usize) -> DraftEffort {
    DraftEffort::Always(NonZeroUsize::new(num_tokens).unwrap_or(NonZeroUsize::MIN))
}
