//! Readings on an empty state, kept: they depend on question and labels alone.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use assay_engine::decision::LabelQuestion;
use sha2::{Digest, Sha256};

/// Values kept at most, over all readings: 8 MiB.
const MAX_VALUES: usize = 1 << 20;

/// Joint log-probabilities by question; the oldest go first. A value found here has the bits of one read anew.
#[derive(Debug, Default)]
pub(crate) struct PriorCache(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    readings: BTreeMap<[u8; 32], Vec<f64>>,
    /// Keys, oldest first.
    ages: VecDeque<[u8; 32]>,
    num_values: usize,
}

impl PriorCache {
    /// The joints of the question's labels, in order, if they were read before.
    pub(crate) fn get(&self, question: &LabelQuestion) -> Option<Vec<f64>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.readings.get(&key(question)).cloned()
    }

    /// Keeps what was read.
    pub(crate) fn put(&self, question: &LabelQuestion, logprobs: &[f64]) {
        let key = key(question);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.readings.insert(key, logprobs.to_vec()).is_some() {
            return;
        }
        kept.ages.push_back(key);
        kept.num_values += logprobs.len();
        while kept.num_values > MAX_VALUES
            && let Some(oldest) = kept.ages.pop_front()
        {
            let gone = kept.readings.remove(&oldest);
            kept.num_values -= gone.map_or(0, |logprobs| logprobs.len());
        }
    }
}

/// A hash of every id, with lengths in front so that no two questions hash the same text.
fn key(question: &LabelQuestion) -> [u8; 32] {
    let mut hash = Sha256::new();
    let mut list = |ids: &[u32]| {
        hash.update((ids.len() as u64).to_le_bytes());
        ids.iter().for_each(|id| hash.update(id.to_le_bytes()));
    };
    list(&question.prompt_token_ids);
    question.labels.iter().for_each(|label| list(label));
    list(&question.end_token_ids);
    hash.update(&question.healed_bytes);
    hash.finalize().into()
}
