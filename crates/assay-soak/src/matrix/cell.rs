//! What a cell is: one level of each factor.

use std::fmt;
use std::num::NonZeroUsize;

use crate::rig::Drafts;
use crate::subject::{BLOCK_TOKENS, Weights};

/// How much of the probe's prompt the cache holds when it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefix {
    /// Nothing.
    Cold,
    /// So many tokens exactly: another prompt began alike and then went another way.
    Hit(usize),
    /// The same request came before.
    Second,
}

/// Rows of a prompt in one pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// So many.
    Rows(NonZeroUsize),
    /// All of them.
    Whole,
}

/// A condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Sequences that decode together, the probe among them.
    pub together: usize,
    /// What the cache holds.
    pub prefix: Prefix,
    /// How prompts are cut.
    pub chunk: Chunk,
    /// Where drafts come from.
    pub drafts: Drafts,
    /// Threads of the model.
    pub threads: NonZeroUsize,
    /// Whether the model was loaded anew.
    pub weights: Weights,
}

/// The levels of each factor.
#[derive(Clone, Debug)]
pub struct Factors {
    /// [`Cell::together`].
    pub together: Vec<usize>,
    /// [`Cell::prefix`].
    pub prefixes: Vec<Prefix>,
    /// [`Cell::chunk`].
    pub chunks: Vec<Chunk>,
    /// [`Cell::drafts`].
    pub drafts: Vec<Drafts>,
    /// [`Cell::threads`].
    pub threads: Vec<NonZeroUsize>,
    /// [`Cell::weights`].
    pub weights: Vec<Weights>,
}

impl Factors {
    /// The whole matrix, with hits that end one token before, at, and one after each of these block edges.
    pub fn with_edges(edges: impl IntoIterator<Item = usize>) -> Self {
        let mut prefixes = vec![Prefix::Cold, Prefix::Second];
        for edge in edges {
            let at = edge * BLOCK_TOKENS;
            prefixes.extend([at - 1, at, at + 1].map(Prefix::Hit));
        }
        let rows = |rows| Chunk::Rows(NonZeroUsize::new(rows).expect("a chunk has rows"));
        Self {
            together: vec![1, 2, 8, 32, 64],
            prefixes,
            chunks: vec![rows(16), rows(64), rows(512), Chunk::Whole],
            drafts: vec![Drafts::Off, Drafts::Ngram, Drafts::Model],
            threads: (1..=2).filter_map(NonZeroUsize::new).collect(),
            weights: vec![Weights::Kept, Weights::LoadedAnew],
        }
    }

    /// Number of levels of each factor, in the order of [`Factors::cell`].
    pub fn sizes(&self) -> [usize; 6] {
        [
            self.together.len(),
            self.prefixes.len(),
            self.chunks.len(),
            self.drafts.len(),
            self.threads.len(),
            self.weights.len(),
        ]
    }

    /// Number of cells.
    pub fn num_cells(&self) -> usize {
        self.sizes().iter().product()
    }

    /// The cell of these levels.
    ///
    /// # Panics
    /// If a level is past its factor's size.
    pub fn cell(&self, levels: [usize; 6]) -> Cell {
        let [together, prefix, chunk, drafts, threads, weights] = levels;
        Cell {
            together: self.together[together],
            prefix: self.prefixes[prefix],
            chunk: self.chunks[chunk],
            drafts: self.drafts[drafts],
            threads: self.threads[threads],
            weights: self.weights[weights],
        }
    }
}

impl Cell {
    /// Tokens of the probe's prompt: what the cache holds, then a few chunks and a rest.
    pub fn num_prompt_tokens(&self) -> usize {
        let num_hit = match self.prefix {
            Prefix::Cold | Prefix::Second => 0,
            Prefix::Hit(num_tokens) => num_tokens,
        };
        num_hit
            + match self.chunk {
                Chunk::Rows(rows) if rows.get() < 64 => 3 * rows.get() + 5,
                Chunk::Rows(rows) if rows.get() < 512 => 2 * rows.get() + 9,
                Chunk::Rows(rows) => rows.get() + 13,
                Chunk::Whole => 70,
            }
    }

    /// Prompt tokens that the cache must spare the probe.
    pub fn num_cached_tokens(&self) -> usize {
        match self.prefix {
            Prefix::Cold => 0,
            Prefix::Hit(num_tokens) => num_tokens,
            // The last token's row gives the first of the reply.
            Prefix::Second => self.num_prompt_tokens() - 1,
        }
    }

    /// Rows of the probe's prompt that each step must compute, after so many cached tokens.
    pub fn chunks_after(&self, num_cached: usize) -> Vec<usize> {
        let mut num_left = self.num_prompt_tokens() - num_cached;
        let rows = match self.chunk {
            Chunk::Rows(rows) => rows.get(),
            Chunk::Whole => num_left,
        };
        let mut chunks = Vec::new();
        while num_left > 0 {
            let chunk = rows.min(num_left);
            chunks.push(chunk);
            num_left -= chunk;
        }
        chunks
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            together,
            prefix,
            chunk,
            drafts,
            threads,
            weights,
        } = self;
        write!(
            f,
            "{together} together, {prefix:?}, chunk {chunk:?}, drafts {drafts:?}, {threads} threads, weights {weights:?}"
        )
    }
}
