//! A model that breaks one rule on purpose: what the matrix must notice in it, it would notice in the engine.

use std::ops::Range;

use assay_kernels::Compute;
use assay_models::{BlockId, ForwardBatch, ForwardError, ForwardModel, Logits, ModelInfo};

/// A fault, and the condition that brings it about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// Rows that begin behind others of their prompt, from the cache or an earlier chunk, read another block in place
    /// of the first.
    WrongBlock,
    /// The first two rows of logits change places where sequences share a pass.
    SwappedRows,
    /// The last bit of the largest logit turns over in rows behind a sequence's first, as those of drafts are.
    LaterRowBit,
    /// The same in every row.
    LastBit,
}

/// A row of logits that a pass wanted.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    sequence: usize,
    is_first_of_sequence: bool,
}

/// Wraps a model.
pub struct Mutant<M> {
    model: M,
    mutation: Mutation,
    /// Of the last pass.
    wanted: Vec<Wanted>,
}

impl<M: ForwardModel> Mutant<M> {
    /// `model` with a fault.
    pub fn new(model: M, mutation: Mutation) -> Self {
        Self {
            model,
            mutation,
            wanted: Vec::new(),
        }
    }
}

impl<M: ForwardModel> ForwardModel for Mutant<M> {
    fn info(&self) -> &ModelInfo {
        self.model.info()
    }

    fn forward_layers(&mut self, batch: &ForwardBatch) -> Result<(), ForwardError> {
        let sequence_of = |row: u32| batch.cu_seqlens.partition_point(|&begin| begin <= row) - 1;
        self.wanted.clear();
        for &row in &batch.logit_rows {
            let sequence = sequence_of(row);
            let before = self.wanted.last().map(|wanted| wanted.sequence);
            self.wanted.push(Wanted {
                sequence,
                is_first_of_sequence: before != Some(sequence),
            });
        }
        if self.mutation != Mutation::WrongBlock {
            return self.model.forward_layers(batch);
        }
        let mut batch = batch.clone();
        let num_blocks = self.model.info().num_kv_blocks as u32;
        for (rows, table) in batch.cu_seqlens.windows(2).zip(&mut batch.block_tables) {
            let is_behind = batch.positions[rows[0] as usize] > 0;
            if is_behind && rows[1] - rows[0] > 1 {
                table[0] = BlockId((table[0].0 + 1) % num_blocks);
            }
        }
        self.model.forward_layers(&batch)
    }

    fn head(&mut self, range: Range<usize>) -> Logits {
        let logits = self.model.head(range.clone());
        let wanted = &self.wanted[range];
        let vocab_size = self.info().vocab_size;
        let mut rows: Vec<Vec<f32>> = (0..wanted.len())
            .map(|index| logits.row(index).to_vec())
            .collect();
        match self.mutation {
            Mutation::WrongBlock => {}
            Mutation::SwappedRows => {
                if let [first, second, ..] = wanted
                    && first.sequence != second.sequence
                {
                    rows.swap(0, 1);
                }
            }
            Mutation::LaterRowBit => {
                let pairs = rows.iter_mut().zip(wanted);
                for (row, _) in pairs.filter(|(_, wanted)| !wanted.is_first_of_sequence) {
                    turn_last_bit(row);
                }
            }
            Mutation::LastBit => rows.iter_mut().for_each(|row| turn_last_bit(row)),
        }
        Logits::from_rows(vocab_size, rows.concat())
    }

    fn compute(&self) -> &Compute {
        self.model.compute()
    }
}

/// Of the largest logit.
fn turn_last_bit(row: &mut [f32]) {
    if let Some(largest) = row.iter_mut().max_by(|a, b| a.total_cmp(b)) {
        *largest = f32::from_bits(largest.to_bits() ^ 1);
    }
}
