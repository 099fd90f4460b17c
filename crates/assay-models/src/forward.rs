//! The one door of a model: a batch of token rows in, logits rows out.
//!
//! A row's logits depend on its own sequence alone: never on batch mates, chunking, threads or cache
//! state (`docs/numerics.md`).

use std::ops::Range;
use std::sync::Arc;

use assay_kernels::Compute;
use assay_kernels::log_softmax::{LogSumExp, NonFiniteRow, log_sum_exp};
use assay_kernels::top_k::{NanInRow, top_k};
use thiserror::Error;

use crate::backend::DeviceLogits;

/// Index into the vocabulary.
pub type TokenId = u32;

/// Index of a KV block in the model's pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(pub u32);

/// All keys and values of one KV block, written over another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvBlockCopy {
    /// The block that is read.
    pub from: BlockId,
    /// The block that is overwritten.
    pub to: BlockId,
}

/// Facts about a loaded model that the layers above need.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelInfo {
    /// `general.architecture`, such as `llama`.
    pub architecture: String,
    /// `general.name`, or the architecture where the file has none.
    pub name: String,
    /// Width of a logits row.
    pub vocab_size: usize,
    /// Longest sequence, prompt and reply together, in tokens.
    pub context_length: usize,
    /// Longest sequence that was asked for; more than `context_length` where the KV blocks hold less.
    pub full_context_length: usize,
    /// Tokens in one KV block.
    pub kv_block_tokens: usize,
    /// KV blocks in the pool.
    pub num_kv_blocks: usize,
    /// What a row's logits cost beside its way through the layers: the head's weights over all of theirs. An estimate,
    /// for sharing time.
    pub logits_cost: f64,
    /// Rows of a small pass that are computed together: one row more costs as much as so many. An estimate, for
    /// sharing time; 1 where each row costs its own.
    pub rows_at_once: usize,
}

/// One step's tokens, packed: sequence `s` owns rows `cu_seqlens[s]..cu_seqlens[s + 1]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForwardBatch {
    /// `[num_tokens]` ids, each below the vocabulary size.
    pub token_ids: Vec<TokenId>,
    /// `[num_tokens]` absolute position of each token in its sequence; ascending by one inside a sequence.
    pub positions: Vec<u32>,
    /// `[num_sequences + 1]` row where each sequence begins, then `num_tokens`.
    pub cu_seqlens: Vec<u32>,
    /// `[num_sequences]` KV blocks of each sequence, covering positions `0..=last`.
    pub block_tables: Vec<Vec<BlockId>>,
    /// Ascending row indices whose logits are wanted.
    pub logit_rows: Vec<u32>,
    /// Carried out one after the other, before any row of the batch is written.
    pub block_copies: Vec<KvBlockCopy>,
}

impl ForwardBatch {
    /// Rows in the batch.
    pub fn num_tokens(&self) -> usize {
        self.token_ids.len()
    }

    /// Sequences in the batch.
    pub fn num_sequences(&self) -> usize {
        self.block_tables.len()
    }
}

/// A pass that could not run; the model's state is as before.
#[derive(Debug, Error, PartialEq)]
pub enum ForwardError {
    /// The batch breaks a rule of [`ForwardBatch`]; the text names it.
    #[error("malformed batch: {0}")]
    MalformedBatch(String),
    /// The device that computes has failed; every later pass fails too.
    #[error("{0}; restart the server")]
    Device(String),
}

/// Anything that turns token rows into logits rows.
pub trait ForwardModel: Send {
    /// Facts that never change after loading.
    fn info(&self) -> &ModelInfo;

    /// Runs one pass through all layers: writes K and V of every row, and keeps what the head needs of the wanted
    /// rows until the next pass.
    ///
    /// # Errors
    /// [`ForwardError`] if `batch` breaks a rule; nothing is written then.
    fn forward_layers(&mut self, batch: &ForwardBatch) -> Result<(), ForwardError>;

    /// Logits of some rows of the last pass: `wanted` indexes its `logit_rows`. A row's bits do not depend on the
    /// range that it is asked in, so a caller that reads many rows asks for a few at a time and holds no more.
    ///
    /// # Panics
    /// If `wanted` passes the rows that the last pass wanted.
    fn head(&mut self, wanted: Range<usize>) -> Logits;

    /// Runs one pass and returns the logits of all its wanted rows.
    ///
    /// # Errors
    /// As [`ForwardModel::forward_layers`].
    fn forward(&mut self, batch: &ForwardBatch) -> Result<Logits, ForwardError> {
        self.forward_layers(batch)?;
        Ok(self.head(0..batch.logit_rows.len()))
    }

    /// The compute context that reads of [`Logits`] run on.
    fn compute(&self) -> &Compute;
}

/// Raw head logits of the wanted rows, row-major `[num_rows, vocab_size]`.
///
/// A handle: callers ask for scores and, only where a mask, bias or penalty needs it, for the row itself,
/// so that a device answers without moving a row.
#[derive(Clone, Debug)]
pub struct Logits {
    vocab_size: usize,
    rows: Rows,
}

/// Where the rows lie.
#[derive(Clone, Debug)]
enum Rows {
    Host(Vec<f32>),
    Device(Arc<DeviceLogits>),
}

impl PartialEq for Logits {
    fn eq(&self, other: &Self) -> bool {
        self.vocab_size == other.vocab_size
            && self.num_rows() == other.num_rows()
            && (0..self.num_rows()).all(|index| self.row(index) == other.row(index))
    }
}

impl Logits {
    /// Wraps `data`, `[num_rows, vocab_size]`.
    ///
    /// # Panics
    /// If `data` is not whole rows.
    pub fn from_rows(vocab_size: usize, data: Vec<f32>) -> Self {
        assert!(
            vocab_size > 0 && data.len().is_multiple_of(vocab_size),
            "logits are not whole rows"
        );
        let rows = Rows::Host(data);
        Self { vocab_size, rows }
    }

    /// Wraps rows that lie on a device.
    pub(crate) fn on_device(logits: DeviceLogits) -> Self {
        Self {
            vocab_size: logits.vocab_size(),
            rows: Rows::Device(Arc::new(logits)),
        }
    }

    /// Number of rows.
    pub fn num_rows(&self) -> usize {
        match &self.rows {
            Rows::Host(data) => data.len() / self.vocab_size,
            Rows::Device(logits) => logits.num_rows(),
        }
    }

    /// Width of a row.
    pub fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    /// Whether every logit of row `index` is a number; a row that holds NaN or an infinity has no softmax.
    ///
    /// # Panics
    /// If there is no such row; so for the methods below.
    pub fn is_finite(&self, index: usize) -> bool {
        match &self.rows {
            Rows::Host(_) => self.row(index).iter().all(|logit| logit.is_finite()),
            Rows::Device(logits) => logits.score(index).is_some_and(|score| score.is_finite),
        }
    }

    /// The normaliser of row `index`: with it, any logit of the row becomes its log-probability.
    ///
    /// # Errors
    /// [`NonFiniteRow`] when the row has no distribution: a NaN or an infinity reached it.
    pub fn log_sum_exp(&self, cx: &Compute, index: usize) -> Result<LogSumExp, NonFiniteRow> {
        match &self.rows {
            Rows::Host(_) => log_sum_exp(cx, self.row(index)),
            Rows::Device(logits) => logits.score(index).ok_or(NonFiniteRow)?.normaliser,
        }
    }

    /// The `k` largest logits of row `index` with their ids, best first, ties by lower id; fewer where the
    /// vocabulary is smaller.
    ///
    /// # Errors
    /// [`NanInRow`] when a logit is not a number.
    pub fn top_k(
        &self,
        cx: &Compute,
        index: usize,
        k: usize,
    ) -> Result<Vec<(TokenId, f32)>, NanInRow> {
        let known = match &self.rows {
            Rows::Host(_) => None,
            // A row with a NaN has no best.
            Rows::Device(logits) => logits.score(index).and_then(|score| score.best.get(..k)),
        };
        match known {
            Some(best) if !best.is_empty() => Ok(best.to_vec()),
            _ => top_k(cx.isa, self.row(index), k),
        }
    }

    /// The logit of `token_id` in row `index`; `None` for an id outside the vocabulary.
    pub fn logit(&self, index: usize, token_id: TokenId) -> Option<f32> {
        if token_id as usize >= self.vocab_size {
            return None;
        }
        self.logits_of(index, &[token_id]).pop()
    }

    /// The logits of `token_ids` in row `index`.
    ///
    /// # Panics
    /// If an id is outside the vocabulary.
    pub fn logits_of(&self, index: usize, token_ids: &[TokenId]) -> Vec<f32> {
        if let Rows::Device(logits) = &self.rows {
            return logits.logits_of(index, token_ids);
        }
        let row = self.row(index);
        token_ids.iter().map(|&id| row[id as usize]).collect()
    }

    /// The logit of `token_id` in row `index`, which is finite, and how many ids come before it: those of larger logits,
    /// and of equal ones the lower ids.
    ///
    /// # Panics
    /// If the id is outside the vocabulary.
    pub fn logit_and_place(&self, index: usize, token_id: TokenId) -> (f32, u32) {
        if let Rows::Device(logits) = &self.rows {
            return logits.logit_and_place(index, token_id);
        }
        let (before, rest) = self.row(index).split_at(token_id as usize);
        let logit = rest[0];
        let num_before = before.iter().filter(|other| **other >= logit).count()
            + rest.iter().filter(|other| **other > logit).count();
        (logit, u32::try_from(num_before).expect("token ids are u32"))
    }

    /// Row `index`, on the host; a device's is brought over when it is first asked for.
    pub fn row(&self, index: usize) -> &[f32] {
        match &self.rows {
            Rows::Host(data) => &data[index * self.vocab_size..][..self.vocab_size],
            Rows::Device(logits) => logits.row(index),
        }
    }
}
