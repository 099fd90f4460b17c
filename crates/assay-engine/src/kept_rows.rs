//! Requests that a kept row answers: they end before the step, and no pass runs for them.

use assay_models::Logits;

use crate::batch::LogitRow;
use crate::engine_core::{AddressedEvent, EngineCore};
use crate::row_cache::RowKey;
use crate::rows::{RowOutput, RowOwner, read_rows};
use crate::sequence::SeqId;

/// Requests answered between two steps at most, since those that run wait meanwhile. The others take their chance
/// in the step, or are answered before the next one.
const MOST_BETWEEN_STEPS: usize = 64;

/// A request that asks for one row, and which.
#[derive(Debug)]
pub(crate) struct RowAsk {
    seq_id: SeqId,
    key: RowKey,
}

impl EngineCore {
    /// Notes a request that has just arrived if one kept row would answer it.
    pub(crate) fn note_row_ask(&mut self, arrival: u64) {
        let seq_id = SeqId {
            arrival,
            choice_index: 0,
        };
        let request = self.request_and_choice(seq_id).map(|(request, _)| request);
        if let Some(key) = request.and_then(RowKey::of) {
            self.row_asks.push(RowAsk { seq_id, key });
        }
    }

    /// Answers requests that have not run yet and whose row is kept, in order of arrival.
    pub(crate) fn answer_from_kept_rows(&mut self) {
        let mut events = Vec::new();
        let mut num_answered = 0;
        let mut asks = std::mem::take(&mut self.row_asks);
        asks.retain(|ask| {
            if !self.is_prompt_waiting(ask.seq_id) {
                return false;
            }
            let is_answered = num_answered < MOST_BETWEEN_STEPS && self.answer(ask, &mut events);
            num_answered += usize::from(is_answered);
            !is_answered
        });
        self.row_asks = asks;
        if num_answered > 0 {
            self.stats.num_row_cache_hits += num_answered as u64;
            self.emit(events);
        }
    }

    /// Keeps row `index` of a pass if its request wants no other. Asks for the row only then: it may lie on a device.
    pub(crate) fn keep_row(&mut self, seq_id: SeqId, logits: &Logits, index: usize) {
        let request = self.request_and_choice(seq_id).map(|(request, _)| request);
        if let Some(key) = request.and_then(RowKey::of)
            && self.row_cache.wants(&key, logits.vocab_size())
        {
            self.row_cache.insert(key, logits.row(index));
        }
    }

    fn answer(&mut self, ask: &RowAsk, events: &mut Vec<AddressedEvent>) -> bool {
        let seq_id = ask.seq_id;
        let Some(logits) = self.row_cache.get(&ask.key) else {
            return false;
        };
        let row = LogitRow {
            seq_id,
            position: self.scheduler.last_position(seq_id),
            draft: None,
        };
        let owner: RowOwner<'_> = self.row_owner(row);
        let output = read_rows(self.model.compute(), &logits, &[(0, owner)]).remove(0);
        let Ok(RowOutput::Scored(token)) = output else {
            unreachable!("only rows that were scored are kept, for requests that score them");
        };
        self.scheduler.spare(seq_id);
        self.start(seq_id.arrival);
        self.advance_prompt(seq_id, token, events);
        self.end_sequence(seq_id);
        true
    }
}
