//! A scripted model: a real logits source behind the real engine, whose rows a test decides.
//!
//! It stores the token ids of every KV slot, as a KV cache would store keys and values, and reads a
//! sequence's history back through its block table. So a wrong block table, a wrong position or a
//! block that two sequences share changes the history, and with it every logit. Positions that were
//! not written under the present owner are poisoned, never zero.

mod gate;
mod rows;
mod vocab;

pub use gate::StepGate;
pub use rows::{background_row, forcing_row, nan_row, replying};
pub use vocab::ScriptedVocab;

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use assay_kernels::{Compute, Isa, ThreadPool};
use assay_models::{ForwardBatch, ForwardError, ForwardModel, Logits, ModelInfo, TokenId};

/// Decides a row from the sequence's tokens so far; the row has `vocab_size` logits.
pub type Script = Box<dyn FnMut(&[TokenId]) -> Vec<f32> + Send>;

/// A model whose logits are a function of the token history.
pub struct ScriptedModel {
    info: ModelInfo,
    script: Script,
    /// `[num_kv_blocks * kv_block_tokens]` what each slot holds.
    slots: Vec<Option<Slot>>,
    /// Logits of the rows that the last pass wanted.
    wanted_rows: Vec<Vec<f32>>,
    compute: Compute,
    gate: StepGate,
    batch_sizes: Arc<Mutex<Vec<usize>>>,
}

/// What stands in for one position's keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    position: u32,
    token_id: TokenId,
}

impl ScriptedModel {
    /// A model of `vocab_size` tokens with room for plenty; narrow it with the `with_` methods.
    pub fn new(
        vocab_size: usize,
        script: impl FnMut(&[TokenId]) -> Vec<f32> + Send + 'static,
    ) -> Self {
        let info = ModelInfo {
            architecture: "scripted".to_owned(),
            name: "scripted".to_owned(),
            vocab_size,
            context_length: 4096,
            full_context_length: 4096,
            logits_cost: 0.25,
            rows_at_once: 1,
            kv_block_tokens: 16,
            num_kv_blocks: 2048,
        };
        Self {
            slots: vec![None; info.kv_block_tokens * info.num_kv_blocks],
            info,
            script: Box::new(script),
            wanted_rows: Vec::new(),
            compute: Compute::new(Isa::SCALAR, ThreadPool::new(NonZeroUsize::MIN)),
            gate: StepGate::default(),
            batch_sizes: Arc::default(),
        }
    }

    /// Sets the longest sequence.
    pub fn with_context_length(mut self, context_length: usize) -> Self {
        self.info.context_length = context_length;
        self.info.full_context_length = context_length;
        self
    }

    /// Sets the KV pool.
    pub fn with_kv_pool(mut self, num_kv_blocks: usize, kv_block_tokens: usize) -> Self {
        self.info.num_kv_blocks = num_kv_blocks;
        self.info.kv_block_tokens = kv_block_tokens;
        self.slots = vec![None; num_kv_blocks * kv_block_tokens];
        self
    }

    /// Lets `gate` hold each forward pass.
    pub fn with_gate(mut self, gate: &StepGate) -> Self {
        self.gate = gate.clone();
        self
    }

    /// Number of sequences of each forward pass so far, shared with the caller.
    pub fn batch_sizes(&self) -> Arc<Mutex<Vec<usize>>> {
        Arc::clone(&self.batch_sizes)
    }

    fn check(&self, holds: bool, what: impl FnOnce() -> String) -> Result<(), ForwardError> {
        if holds {
            Ok(())
        } else {
            Err(ForwardError::MalformedBatch(what()))
        }
    }

    /// Every rule of [`ForwardBatch`], so that a test sees a broken one at once.
    fn check_batch(&self, batch: &ForwardBatch) -> Result<(), ForwardError> {
        let num_tokens = batch.num_tokens();
        let vocab_size = self.info.vocab_size;
        self.check(batch.positions.len() == num_tokens, || {
            format!("{} positions, {num_tokens} tokens", batch.positions.len())
        })?;
        self.check(
            batch.cu_seqlens.len() == batch.num_sequences() + 1
                && batch.cu_seqlens.first() == Some(&0)
                && batch.cu_seqlens.last().map(|&end| end as usize) == Some(num_tokens)
                && batch.cu_seqlens.is_sorted_by(|a, b| a < b),
            || format!("cu_seqlens {:?} of {num_tokens} tokens", batch.cu_seqlens),
        )?;
        self.check(
            batch.token_ids.iter().all(|&id| (id as usize) < vocab_size),
            || "a token id is past the vocabulary".to_owned(),
        )?;
        self.check(
            batch.logit_rows.is_sorted_by(|a, b| a < b)
                && batch
                    .logit_rows
                    .iter()
                    .all(|&row| (row as usize) < num_tokens),
            || format!("logit rows {:?} of {num_tokens} tokens", batch.logit_rows),
        )
    }

    fn slot_index(
        &self,
        batch: &ForwardBatch,
        sequence_index: usize,
        position: u32,
    ) -> Result<usize, ForwardError> {
        let block_tokens = self.info.kv_block_tokens;
        batch.block_tables[sequence_index]
            .get(position as usize / block_tokens)
            .map(|block| block.0 as usize * block_tokens + position as usize % block_tokens)
            .filter(|&index| index < self.slots.len())
            .ok_or_else(|| {
                ForwardError::MalformedBatch(format!(
                    "sequence {sequence_index}: no block for position {position}"
                ))
            })
    }

    /// The tokens of positions `0..=last`, read back through the block table.
    fn history(
        &self,
        batch: &ForwardBatch,
        sequence_index: usize,
        last: u32,
    ) -> Result<Vec<TokenId>, ForwardError> {
        (0..=last)
            .map(|position| {
                let index = self.slot_index(batch, sequence_index, position)?;
                match self.slots[index] {
                    Some(slot) if slot.position == position => Ok(slot.token_id),
                    found => Err(ForwardError::MalformedBatch(format!(
                        "sequence {sequence_index}: slot {index} holds {found:?}, not position {position}"
                    ))),
                }
            })
            .collect()
    }
}

impl ForwardModel for ScriptedModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn forward_layers(&mut self, batch: &ForwardBatch) -> Result<(), ForwardError> {
        self.gate.pass();
        self.check_batch(batch)?;
        locked(&self.batch_sizes).push(batch.num_sequences());

        let block_tokens = self.info.kv_block_tokens;
        for copy in &batch.block_copies {
            let [from, to] = [copy.from, copy.to].map(|block| block.0 as usize * block_tokens);
            self.check(from.max(to) + block_tokens <= self.slots.len(), || {
                format!("{copy:?} of a pool of {}", self.info.num_kv_blocks)
            })?;
            self.slots.copy_within(from..from + block_tokens, to);
        }
        // All rows write before any row reads: two sequences in one block spoil each other.
        let sequence_rows: Vec<(usize, usize)> = batch
            .cu_seqlens
            .windows(2)
            .enumerate()
            .flat_map(|(sequence_index, ends)| {
                (ends[0] as usize..ends[1] as usize).map(move |row| (sequence_index, row))
            })
            .collect();
        for &(sequence_index, row) in &sequence_rows {
            let position = batch.positions[row];
            let index = self.slot_index(batch, sequence_index, position)?;
            self.slots[index] = Some(Slot {
                position,
                token_id: batch.token_ids[row],
            });
        }
        self.wanted_rows.clear();
        for &logit_row in &batch.logit_rows {
            let (sequence_index, row) = sequence_rows[logit_row as usize];
            let history = self.history(batch, sequence_index, batch.positions[row])?;
            let logits = (self.script)(&history);
            assert_eq!(
                logits.len(),
                self.info.vocab_size,
                "the script's row has the wrong width"
            );
            self.wanted_rows.push(logits);
        }
        Ok(())
    }

    fn head(&mut self, wanted: Range<usize>) -> Logits {
        Logits::from_rows(self.info.vocab_size, self.wanted_rows[wanted].concat())
    }

    fn compute(&self) -> &Compute {
        &self.compute
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
