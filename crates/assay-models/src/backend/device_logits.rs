//! Logits that stay on a device: what is asked of them comes back in a few words, a whole row only where it is asked for.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use assay_kernels::cuda::{Cuda, DeviceBuffer};
use assay_kernels::row_scores::cuda::{RowScore, RowScores};

use crate::forward::TokenId;

/// Memory of logits that nobody holds any more, to be used again.
pub(crate) type SpareLogits = Arc<Mutex<Vec<Scored>>>;

/// Rows and what scores them.
#[derive(Debug, Default)]
pub(crate) struct Scored {
    pub(crate) values: DeviceBuffer<f32>,
    scores: RowScores,
}

/// Rows of logits on a device, `[num_rows, vocab_size]`.
///
/// After a fault no row has a score and every value is NaN: whoever reads one fails, and the next pass tells why.
#[derive(Debug)]
pub(crate) struct DeviceLogits {
    cuda: Arc<Cuda>,
    vocab_size: usize,
    num_rows: usize,
    scored: Mutex<Scored>,
    /// Read back when the first is asked for.
    scores: OnceLock<Vec<RowScore>>,
    /// Rows that were brought over.
    rows: Vec<OnceLock<Vec<f32>>>,
    spare: SpareLogits,
}

impl DeviceLogits {
    /// Takes the rows of `scored`, whose scores it asks for; its memory goes to `spare` in the end.
    pub(crate) fn new(
        cuda: &Arc<Cuda>,
        vocab_size: usize,
        mut scored: Scored,
        spare: &SpareLogits,
    ) -> Self {
        let num_rows = scored.values.len() / vocab_size;
        scored.scores.score(cuda, &scored.values, vocab_size);
        Self {
            cuda: Arc::clone(cuda),
            vocab_size,
            num_rows,
            scored: Mutex::new(scored),
            scores: OnceLock::new(),
            rows: (0..num_rows).map(|_| OnceLock::new()).collect(),
            spare: Arc::clone(spare),
        }
    }

    pub(crate) fn num_rows(&self) -> usize {
        self.num_rows
    }

    pub(crate) fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    /// What is known of row `index`; `None` after a fault.
    pub(crate) fn score(&self, index: usize) -> Option<&RowScore> {
        assert!(index < self.num_rows, "row {index} of {}", self.num_rows);
        let read = || self.lock().scores.read(&self.cuda).unwrap_or_default();
        self.scores.get_or_init(read).get(index)
    }

    /// The logits of `token_ids` in row `index`.
    pub(crate) fn logits_of(&self, index: usize, token_ids: &[TokenId]) -> Vec<f32> {
        if let Some(row) = self.rows[index].get() {
            return token_ids.iter().map(|&id| row[id as usize]).collect();
        }
        // Most named ids are among the best.
        let best = self.score(index).map_or(&[][..], |score| &score.best);
        let among = |id: &TokenId| best.iter().find(|one| one.0 == *id).map(|one| one.1);
        let known: Option<Vec<f32>> = token_ids.iter().map(among).collect();
        known.unwrap_or_else(|| {
            let places = self.places(index, token_ids);
            places.into_iter().map(|(logit, _)| logit).collect()
        })
    }

    /// The logit of `token_id` in row `index`, and how many ids come before it.
    pub(crate) fn logit_and_place(&self, index: usize, token_id: TokenId) -> (f32, u32) {
        let best = self.score(index).map_or(&[][..], |score| &score.best);
        match best.iter().position(|one| one.0 == token_id) {
            Some(place) => (best[place].1, place as u32),
            None => self.places(index, &[token_id])[0],
        }
    }

    /// Row `index`, brought over.
    pub(crate) fn row(&self, index: usize) -> &[f32] {
        self.rows[index].get_or_init(|| {
            let (start, len) = (index * self.vocab_size, self.vocab_size);
            let read = self.lock().values.read(&self.cuda, start, len);
            read.unwrap_or_else(|_| vec![f32::NAN; len])
        })
    }

    fn places(&self, index: usize, token_ids: &[TokenId]) -> Vec<(f32, u32)> {
        let Scored { values, scores } = &mut *self.lock();
        scores
            .of_ids(&self.cuda, values, self.vocab_size, index, token_ids)
            .unwrap_or_else(|_| vec![(f32::NAN, 0); token_ids.len()])
    }

    fn lock(&self) -> MutexGuard<'_, Scored> {
        self.scored.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for DeviceLogits {
    fn drop(&mut self) {
        let scored = std::mem::take(&mut *self.lock());
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        spare.push(scored);
    }
}
