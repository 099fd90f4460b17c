//! A draft model that is of the target's own weights and errs on purpose: so its guesses are right and wrong in turn,
//! whatever the text.

use std::ops::Range;

use assay_kernels::Compute;
use assay_models::{ForwardBatch, ForwardError, ForwardModel, Logits, ModelInfo};

/// Every position that this divides gets the second-best token for the best one.
const ERRS_EVERY: u32 = 3;

/// Wraps a model.
pub struct Erring<M> {
    model: M,
    /// Positions of the rows that the last pass wanted.
    wanted_positions: Vec<u32>,
}

impl<M: ForwardModel> Erring<M> {
    /// `model`, erring.
    pub fn new(model: M) -> Self {
        Self {
            model,
            wanted_positions: Vec::new(),
        }
    }
}

impl<M: ForwardModel> ForwardModel for Erring<M> {
    fn info(&self) -> &ModelInfo {
        self.model.info()
    }

    fn forward_layers(&mut self, batch: &ForwardBatch) -> Result<(), ForwardError> {
        self.model.forward_layers(batch)?;
        let rows = batch.logit_rows.iter();
        self.wanted_positions = rows.map(|&row| batch.positions[row as usize]).collect();
        Ok(())
    }

    fn head(&mut self, wanted: Range<usize>) -> Logits {
        let logits = self.model.head(wanted.clone());
        let vocab_size = self.info().vocab_size;
        let mut data = Vec::with_capacity(wanted.len() * vocab_size);
        for (index, position) in self.wanted_positions[wanted].iter().enumerate() {
            let begin = data.len();
            data.extend_from_slice(logits.row(index));
            if position % ERRS_EVERY == 0 {
                let row = &mut data[begin..];
                let best = (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b]));
                if let Some(best) = best {
                    row[best] = -1e9;
                }
            }
        }
        Logits::from_rows(vocab_size, data)
    }

    fn compute(&self) -> &Compute {
        self.model.compute()
    }
}
