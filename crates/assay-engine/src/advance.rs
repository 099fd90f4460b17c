//! The step's last stages, from rows of logits to events: raw scores, then the sampler, then each token's way
//! through its choice.
//!
//! The rows of one sequence are read in turns, one after the other: each only once the choice has taken the token
//! before it, and only if that token is the one that the row was computed for. So a draft's rows are drawn from
//! with the very state that plain decoding has there, and what a draft guessed wrong is never looked at.

use assay_models::TokenId;

use crate::batch::LogitRow;
use crate::engine_core::{AddressedEvent, EngineCore};
use crate::output::RequestError;
use crate::rows::{RowOutput, RowOwner, read_rows, rows_per_block};
use crate::sequence::SeqId;

/// What the step's rows did to their choices.
#[derive(Default)]
pub(crate) struct Advanced {
    /// Tokens of sequences that go on with them, those of one sequence in order.
    pub(crate) continued: Vec<(SeqId, TokenId)>,
    pub(crate) events: Vec<AddressedEvent>,
}

/// A token that its choice goes on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Drawn {
    seq_id: SeqId,
    position: u32,
    token_id: TokenId,
}

impl EngineCore {
    /// Reads the wanted rows of the pass and takes what they tell to their choices.
    ///
    /// The head answers a block of rows at a time, so that a long prompt's scores hold few logits.
    pub(crate) fn advance(&mut self, rows: &[LogitRow]) -> Advanced {
        let rows_per_block = rows_per_block(self.model.info().vocab_size);
        let mut drawn = Vec::new();
        let mut events = Vec::new();
        for (block_index, block) in rows.chunks(rows_per_block).enumerate() {
            let first = block_index * rows_per_block;
            let logits = self.model.head(first..first + block.len());
            for turn in turns(block) {
                let wanted: Vec<usize> = turn
                    .into_iter()
                    .filter(|&index| self.is_wanted(block[index], &drawn))
                    .collect();
                let is_draft = |&&index: &&usize| block[index].draft.is_some();
                self.count_accepted(wanted.iter().filter(is_draft).count());
                for &index in &wanted {
                    self.prepare_mask(block[index].seq_id);
                }
                let owners: Vec<(usize, RowOwner<'_>)> = wanted
                    .iter()
                    .map(|&index| (index, self.row_owner(block[index])))
                    .collect();
                let outputs = read_rows(self.model.compute(), &logits, &owners);
                for (index, output) in wanted.into_iter().zip(outputs) {
                    if let Ok(RowOutput::Scored(_)) = output {
                        self.keep_row(block[index].seq_id, &logits, index);
                    }
                    drawn.extend(self.advance_row(block[index], output, &mut events));
                }
            }
        }
        // A request that failed after one of its choices had drawn takes that draw with it.
        drawn.retain(|drawn| self.scheduler.sequence(drawn.seq_id).is_some());
        Advanced {
            continued: drawn
                .into_iter()
                .map(|drawn| (drawn.seq_id, drawn.token_id))
                .collect(),
            events,
        }
    }

    /// Whether a row counts: its choice goes on, and a guess was right.
    fn is_wanted(&self, row: LogitRow, drawn: &[Drawn]) -> bool {
        let is_right = |token_id| {
            drawn.contains(&Drawn {
                seq_id: row.seq_id,
                position: row.position,
                token_id,
            })
        };
        let is_owned = self.request_and_choice(row.seq_id).is_some()
            || self.unsettled_decision(row.seq_id.arrival).is_some();
        is_owned && row.draft.is_none_or(is_right)
    }

    /// Takes what a row told to its request; the drawn token, where its choice goes on.
    fn advance_row(
        &mut self,
        row: LogitRow,
        output: Result<RowOutput, RequestError>,
        events: &mut Vec<AddressedEvent>,
    ) -> Option<Drawn> {
        let seq_id = row.seq_id;
        match output {
            Ok(RowOutput::Scored(token)) => self.advance_prompt(seq_id, token, events),
            Ok(RowOutput::Drawn(output)) => {
                let token_id = output.token_id;
                return self
                    .advance_choice(seq_id, output, events)
                    .then_some(Drawn {
                        seq_id,
                        position: row.position + 1,
                        token_id,
                    });
            }
            Ok(RowOutput::Nodes(readings)) => self.advance_decision(seq_id.arrival, readings),
            Err(error) if self.decisions.contains_key(&seq_id.arrival) => {
                self.fail_decision(seq_id.arrival, error);
            }
            Err(error) => self.fail_request(seq_id.arrival, error, events),
        }
        None
    }
}

/// Indices of rows that may be read together: first all that are no guesses, then each sequence's first guess, and
/// so on. The rows of a sequence stand together in `rows`, in order.
fn turns(rows: &[LogitRow]) -> Vec<Vec<usize>> {
    let mut turns = vec![Vec::new()];
    let mut turn_index = 0;
    for (index, row) in rows.iter().enumerate() {
        turn_index = if row.draft.is_some() {
            turn_index + 1
        } else {
            0
        };
        if turn_index == turns.len() {
            turns.push(Vec::new());
        }
        turns[turn_index].push(index);
    }
    turns
}
