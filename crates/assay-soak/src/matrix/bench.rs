//! Runs cells of one subject.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use anyhow::Result;
use assay_engine::{EngineConfig, Request};

use super::cell::{Cell, Chunk, Prefix};
use super::requests::CellRequests;
use crate::client::{Client, Collected, first_difference};
use crate::mutant::Mutation;
use crate::reference::References;
use crate::rig::{Drafts, Rig, Setup, always};
use crate::subject::{KV_BLOCKS, Subject, Use};
use crate::watch::Record;

/// Rows of a step at most: enough that every share of it holds the largest chunk.
const STEP_TOKENS: usize = 8_192;
/// Draft tokens behind a sequence.
const DRAFT_TOKENS: usize = 3;

/// Why a cell did not hold.
#[derive(Debug, thiserror::Error)]
pub enum CellError {
    /// Bits differ, a block leaked, or the engine did what it must not: a fault.
    #[error("{0}")]
    Fault(String),
    /// The condition did not come about with this seed: nothing was proven.
    #[error("the condition did not come about: {0}")]
    Void(String),
    /// The rig failed.
    #[error(transparent)]
    Rig(#[from] anyhow::Error),
}

/// What a cell that held has seen.
#[derive(Clone, Debug, Default)]
pub struct CellReport {
    /// Replies that were compared.
    pub num_replies: usize,
    /// Steps that were held against the naive model.
    pub num_steps: u64,
    /// What happened to the probe.
    pub probe: Record,
    /// The seed that brought the condition about, and a hash of all bits of all replies, in order: another process
    /// that runs the same build over the same cell has the same.
    pub bits: CellBits,
}

/// All bits of a cell's replies, as a number that processes can compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CellBits {
    /// Seed of the probe.
    pub seed: u64,
    /// Hash of the replies.
    pub hash: u64,
}

/// A subject with its references and requests.
pub struct Bench {
    subject: Arc<Subject>,
    references: References,
    requests: CellRequests,
    mutation: Option<Mutation>,
}

impl Bench {
    /// Nothing run yet.
    ///
    /// # Errors
    /// The subject's vocabulary cannot spell the requests.
    pub fn new(subject: &Arc<Subject>) -> Result<Self> {
        Self::with_mutation(subject, None)
    }

    /// The same over a model that has a fault, but not where it runs alone for the references.
    ///
    /// # Errors
    /// As [`Bench::new`].
    pub fn with_mutation(subject: &Arc<Subject>, mutation: Option<Mutation>) -> Result<Self> {
        Ok(Self {
            references: References::new(subject),
            requests: CellRequests::new(subject)?,
            subject: Arc::clone(subject),
            mutation,
        })
    }

    /// Runs `cell`, with the first of up to `num_tries` seeds from `seed` on that brings its condition about.
    ///
    /// # Errors
    /// [`CellError`]; a fault of any try ends them.
    pub fn run(&mut self, cell: &Cell, seed: u64, num_tries: u64) -> Result<CellReport, CellError> {
        let mut tries = 0;
        loop {
            let run = self.run_once(cell, seed + tries);
            tries += 1;
            match run {
                Err(CellError::Void(_)) if tries < num_tries => {}
                run => return run,
            }
        }
    }

    fn run_once(&mut self, cell: &Cell, seed: u64) -> Result<CellReport, CellError> {
        let probe = self.requests.probe(cell, seed);
        let mut rig = Rig::start(&self.subject, &setup(cell, self.mutation))?;
        let mut report = CellReport::default();
        report.bits.seed = seed;
        match cell.prefix {
            Prefix::Cold => {}
            Prefix::Hit(num_tokens) => {
                let seeder = self.requests.seeder(&probe, num_tokens);
                let (_, client) = submit(&mut rig, seeder.clone())?;
                self.compare(&seeder, &collect(client)?, &mut report)?;
            }
            Prefix::Second => {
                let (first, client) = submit(&mut rig, probe.clone())?;
                self.compare(&probe, &collect(client)?, &mut report)?;
                check_chunks(cell, 0, &rig.record(first))?;
            }
        }
        let opener = rig.hold_with(self.requests.opener())?;
        let (probe_id, probe_client) = submit(&mut rig, probe.clone())?;
        let mut clients = Vec::new();
        for companion in self.requests.companions(cell) {
            clients.push(submit(&mut rig, companion.clone())?.1);
        }
        rig.release();
        collect(opener)?;
        let collected = collect(probe_client)?;
        self.compare(&probe, &collected, &mut report)?;
        for (index, client) in clients.into_iter().enumerate() {
            let companion = self.requests.companions(cell)[index].clone();
            self.compare(&companion, &collect(client)?, &mut report)?;
        }
        report.probe = rig.record(probe_id);
        let remains = rig.stop()?;
        report.num_steps = remains.totals.num_steps;
        if remains.totals.num_faults > 0 || remains.num_leaked_blocks > 0 {
            return Err(CellError::Fault(format!(
                "{} blocks leaked, {} steps broke a rule: {:?}",
                remains.num_leaked_blocks, remains.totals.num_faults, remains.faults
            )));
        }
        check_condition(cell, &collected, &report.probe)?;
        Ok(report)
    }

    fn compare(
        &mut self,
        request: &Request,
        got: &Collected,
        report: &mut CellReport,
    ) -> Result<(), CellError> {
        let expected = self.references.of(request, None)?;
        report.num_replies += 1;
        let mut hasher = DefaultHasher::new();
        (report.bits.hash, &got.outcome).hash(&mut hasher);
        report.bits.hash = hasher.finish();
        if got.outcome == *expected {
            return Ok(());
        }
        let difference = first_difference(&got.outcome, &expected);
        Err(CellError::Fault(format!("{difference}; {request:?}")))
    }
}

fn setup(cell: &Cell, mutation: Option<Mutation>) -> Setup {
    Setup {
        threads: cell.threads,
        weights: cell.weights,
        use_: Use::Target,
        drafts: cell.drafts,
        num_kv_blocks: KV_BLOCKS,
        mutation,
        config: EngineConfig {
            max_num_seqs: cell.together,
            max_num_batched_tokens: STEP_TOKENS,
            prefill_chunk: match cell.chunk {
                Chunk::Rows(rows) => Some(rows),
                Chunk::Whole => None,
            },
            draft_effort: always(DRAFT_TOKENS),
            ..EngineConfig::default()
        },
    }
}

fn submit(
    rig: &mut Rig,
    request: Request,
) -> Result<(assay_engine::sequence::SeqId, Client), CellError> {
    rig.submit(request)
        .map_err(|refused| CellError::Rig(refused.into()))
}

fn collect(client: Client) -> Result<Collected, CellError> {
    client.collect().map_err(CellError::Fault)
}

/// Proves that the cell was what it says.
fn check_condition(cell: &Cell, probe: &Collected, record: &Record) -> Result<(), CellError> {
    let num_cached = cell.num_cached_tokens();
    if probe.cached_tokens != [u32::try_from(num_cached).unwrap_or(u32::MAX)] {
        return Err(CellError::Fault(format!(
            "{:?} tokens came from the cache, not {num_cached}",
            probe.cached_tokens
        )));
    }
    check_chunks(cell, num_cached, record)?;
    if record.most_decoding != cell.together {
        return Err(CellError::Void(format!(
            "{} decoded together, not {}",
            record.most_decoding, cell.together
        )));
    }
    let has_both = record.num_accepted > 0 && record.num_rejected > 0;
    match cell.drafts {
        Drafts::Off if record.num_drafted > 0 => {
            Err(CellError::Fault(format!("drafts were made: {record:?}")))
        }
        Drafts::Ngram | Drafts::Model | Drafts::Both if !has_both => Err(CellError::Void(format!(
            "drafts were not both right and wrong: {record:?}"
        ))),
        _ => Ok(()),
    }
}

fn check_chunks(cell: &Cell, num_cached: usize, record: &Record) -> Result<(), CellError> {
    let expected = cell.chunks_after(num_cached);
    if record.prefill_chunks == expected {
        return Ok(());
    }
    Err(CellError::Fault(format!(
        "the prompt was computed in {:?} rows, not {expected:?}",
        record.prefill_chunks
    )))
}
