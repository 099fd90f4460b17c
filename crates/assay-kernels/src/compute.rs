//! What an op needs to run: which instruction set, and which threads. Neither moves a bit.

use std::sync::Arc;

use crate::{Isa, ThreadPool};

/// The CPU an op runs on.
#[derive(Clone, Debug)]
pub struct Compute {
    /// Instruction set every op dispatches on.
    pub isa: Isa,
    /// Workers that split rows and tiles; clones share them.
    pub pool: Arc<ThreadPool>,
}

impl Compute {
    /// Builds a compute context from its two parts.
    pub fn new(isa: Isa, pool: ThreadPool) -> Self {
        let pool = Arc::new(pool);
        Self { isa, pool }
    }
}
