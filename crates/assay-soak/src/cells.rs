//! Cells of the whole matrix, drawn by seed.

use std::sync::Arc;

use anyhow::Result;
use serde_json::{Value, json};

use crate::matrix::{Bench, Cell, CellBits, CellError, Factors};
use crate::random::Random;
use crate::subject::Subject;

/// Block edges of the whole matrix: up to past the first chunk of attention.
const EDGES: std::ops::RangeInclusive<usize> = 1..=17;
/// Seeds that a cell may try until its condition comes about.
const NUM_TRIES: u64 = 4;

/// What came of cells so far.
#[derive(Clone, Debug, Default)]
pub struct CellCounts {
    /// Cells that held, with their condition proven.
    pub num_held: u64,
    /// Cells whose condition no try brought about: nothing was proven by them.
    pub num_void: u64,
    /// Cells that did not hold.
    pub num_failed: u64,
    /// Replies compared.
    pub num_replies: u64,
    /// Steps held against the naive model.
    pub num_steps: u64,
    /// Cells that gave the same bits in a new process.
    pub num_repeated: u64,
    /// Of the cell that held last.
    pub last: Option<CellBits>,
}

impl CellCounts {
    /// For `--json`.
    pub fn to_json(&self) -> Value {
        json!({
            "held": self.num_held,
            "condition_not_reached": self.num_void,
            "failed": self.num_failed,
            "replies_compared": self.num_replies,
            "steps_checked": self.num_steps,
            "same_in_a_new_process": self.num_repeated,
            "last_cell": self.last.map(last_cell),
        })
    }
}

/// What a new process prints of its one cell.
fn last_cell(bits: CellBits) -> Value {
    json!({"seed": bits.seed, "replies_hash": bits.hash})
}

/// Draws cells of one subject.
pub struct CellSampler {
    bench: Bench,
    factors: Factors,
    seed: u64,
}

impl CellSampler {
    /// Nothing run yet.
    ///
    /// # Errors
    /// The subject's vocabulary cannot spell the requests.
    pub fn new(subject: &Arc<Subject>, seed: u64) -> Result<Self> {
        Ok(Self {
            bench: Bench::new(subject)?,
            factors: Factors::with_edges(EDGES),
            seed,
        })
    }

    /// Cells of the whole matrix.
    pub fn num_cells(&self) -> usize {
        self.factors.num_cells()
    }

    /// Cell `index` of the seed, and the seed of its probe.
    pub fn cell(&self, index: u64) -> (Cell, u64) {
        let mut random = Random::of(self.seed, index);
        let levels = self.factors.sizes().map(|size| random.below(size));
        // A few probes for each prompt length, so that references are shared.
        let probe_seed = self.seed.wrapping_add(random.below(8) as u64 * NUM_TRIES);
        (self.factors.cell(levels), probe_seed)
    }

    /// Runs cell `index`; what went wrong, if anything did.
    ///
    /// # Errors
    /// The rig failed.
    pub fn run(&mut self, index: u64, counts: &mut CellCounts) -> Result<Option<String>> {
        let (cell, probe_seed) = self.cell(index);
        match self.bench.run(&cell, probe_seed, NUM_TRIES) {
            Ok(report) => {
                counts.num_held += 1;
                counts.num_replies += report.num_replies as u64;
                counts.num_steps += report.num_steps;
                counts.last = Some(report.bits);
                Ok(None)
            }
            Err(CellError::Void(_)) => {
                counts.last = None;
                counts.num_void += 1;
                Ok(None)
            }
            Err(CellError::Fault(fault)) => {
                counts.last = None;
                counts.num_failed += 1;
                Ok(Some(format!("cell {index}: {cell}: {fault}")))
            }
            Err(CellError::Rig(error)) => Err(error),
        }
    }
}
