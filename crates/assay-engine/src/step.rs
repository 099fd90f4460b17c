//! One step of the engine: its stages, in order.

use assay_models::{ForwardError, Logits, TokenId};

use crate::batch;
use crate::draw::{RowOwner, draw_rows};
use crate::engine_core::{AddressedEvent, EngineCore};
use crate::output::{RequestError, TokenOutput};
use crate::scheduler::SchedulerOutput;
use crate::sequence::SeqId;

/// What followed a sequence's last token: the next one with its scores, or why there is none.
struct Drawn {
    seq_id: SeqId,
    output: Result<TokenOutput, RequestError>,
}

/// What the drawn tokens did to their choices.
struct Advanced {
    /// Tokens of sequences that go on.
    continued: Vec<(SeqId, TokenId)>,
    /// Sequences that do not.
    ended: Vec<SeqId>,
    events: Vec<AddressedEvent>,
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
        let logits = self.model.forward(&batch)?;
        let drawn = self.score_and_draw(&scheduled, &logits);
        let Advanced {
            continued,
            ended,
            events,
        } = self.advance_choices(drawn);
        self.scheduler.apply(&scheduled, &continued);
        // After that, so that the cache keeps what this step computed for them.
        for seq_id in ended {
            self.scheduler.finish(seq_id);
        }
        self.publish_stats();
        self.emit(events);
        Ok(())
    }

    /// Raw log-probabilities of each row first, then the sampler; each row on its own.
    fn score_and_draw(&self, scheduled: &SchedulerOutput, logits: &Logits) -> Vec<Drawn> {
        let owners: Vec<RowOwner<'_>> = scheduled
            .scheduled
            .iter()
            .filter(|scheduled| scheduled.wants_logits)
            .map(|scheduled| self.row_owner(scheduled.seq_id))
            .collect();
        let outputs = draw_rows(self.model.compute(), logits, &owners);
        owners
            .iter()
            .zip(outputs)
            .map(|(owner, output)| Drawn {
                seq_id: owner.seq_id(),
                output,
            })
            .collect()
    }

    /// Text pipeline: takes every drawn token through its choice.
    fn advance_choices(&mut self, drawn: Vec<Drawn>) -> Advanced {
        let mut continued = Vec::new();
        let mut ended = Vec::new();
        let mut events = Vec::new();
        for Drawn { seq_id, output } in drawn {
            match output {
                Ok(output) => {
                    let token_id = output.token_id;
                    if self.advance_choice(seq_id, output, &mut events) {
                        continued.push((seq_id, token_id));
                    } else {
                        ended.push(seq_id);
                    }
                }
                Err(error) => self.fail_request(seq_id.arrival, error, &mut events),
            }
        }
        // A request that failed after one of its choices had drawn takes that draw with it.
        continued.retain(|&(seq_id, _)| self.scheduler.sequence(seq_id).is_some());
        Advanced {
            continued,
            ended,
            events,
        }
    }
}
