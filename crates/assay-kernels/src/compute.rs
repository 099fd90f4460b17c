//! What an op needs to run: which instruction set, and which threads. Neither moves a bit.

use crate::{Isa, ThreadPool};

/// The CPU an op runs on.
#[derive(Debug)]
pub struct Compute {
    /// Instruction set every op dispatches on.
    pub isa: Isa,
    /// Workers that split rows and tiles.
    pub pool: ThreadPool,
}

impl Compute {
    /// Builds a compute context from its two parts.
    pub fn new(isa: Isa, pool: ThreadPool) -> Self {
        Self { isa, pool }
    }
}
