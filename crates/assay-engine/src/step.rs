//! One step of the engine: its stages, in order.

use assay_models::{ForwardError, TokenId};

use crate::batch::{self, LogitRow};
use crate::engine_core::{AddressedEvent, EngineCore};
use crate::output::RequestError;
use crate::rows::{RowOutput, RowOwner, read_rows, rows_per_block};
use crate::sequence::SeqId;

/// What one row told its sequence, or why there is nothing.
struct ReadRow {
    seq_id: SeqId,
    output: Result<RowOutput, RequestError>,
}

impl EngineCore {
    /// Runs one forward pass over whatever is scheduled, and all that follows from it.
    ///
    /// # Errors
    /// The model's, which is a broken invariant: no request can cause it.
    pub(crate) fn step(&mut self) -> Result<(), ForwardError> {
        self.drop_gone_clients();
        let scheduled = self.schedule();
        if scheduled.scheduled.is_empty() {
            return Ok(());
        }
        self.prepare_masks(&scheduled);
        let batch = batch::build(&self.scheduler, &scheduled);
        self.model.forward_layers(&batch.forward)?;
        let read = self.score_and_draw(&batch.logit_rows);
        let (continued, events) = self.advance_choices(read);
        self.scheduler.apply(&scheduled, &continued);
        self.publish_stats();
        self.emit(events);
        Ok(())
    }

    /// Raw log-probabilities of each row first, then the sampler where a token is drawn; each row on its own.
    /// The head answers a block of rows at a time, so that a long prompt's scores hold few logits.
    fn score_and_draw(&mut self, rows: &[LogitRow]) -> Vec<ReadRow> {
        let rows_per_block = rows_per_block(self.model.info().vocab_size);
        let mut read = Vec::with_capacity(rows.len());
        for block in rows.chunks(rows_per_block) {
            let first = read.len();
            let logits = self.model.head(first..first + block.len());
            let owners: Vec<RowOwner<'_>> = block.iter().map(|&row| self.row_owner(row)).collect();
            let outputs = read_rows(self.model.compute(), &logits, &owners);
            read.extend(block.iter().zip(outputs).map(|(row, output)| ReadRow {
                seq_id: row.seq_id,
                output,
            }));
        }
        read
    }

    /// Takes every scored prompt token to its request, and every drawn token through its choice's text
    /// pipeline. Gives the tokens of choices that go on, and the events.
    fn advance_choices(
        &mut self,
        read: Vec<ReadRow>,
    ) -> (Vec<(SeqId, TokenId)>, Vec<AddressedEvent>) {
        let mut continued = Vec::new();
        let mut events = Vec::new();
        for ReadRow { seq_id, output } in read {
            match output {
                Ok(RowOutput::Scored(token)) => self.advance_prompt(seq_id, token, &mut events),
                Ok(RowOutput::Drawn(output)) => {
                    let token_id = output.token_id;
                    if self.advance_choice(seq_id, output, &mut events) {
                        continued.push((seq_id, token_id));
                    }
                }
                Err(error) => self.fail_request(seq_id.arrival, error, &mut events),
            }
        }
        // A request that failed after one of its choices had drawn takes that draw with it.
        continued.retain(|&(seq_id, _)| self.scheduler.sequence(seq_id).is_some());
        (continued, events)
    }
}
