//! One step of the engine: its stages, in order.

use assay_models::{ForwardError, Logits, TokenId};

use crate::batch;
use crate::engine_core::{AddressedEvent, EngineCore};
use crate::logprobs::{self, RawLogprobs};
use crate::output::{RequestError, TokenOutput};
use crate::request::LogprobsMode;
use crate::sampler::{self, DrawKey};
use crate::scheduler::SchedulerOutput;
use crate::sequence::SeqId;

/// What followed a sequence's last token: the next one with its scores, or why there is none.
struct Drawn {
    seq_id: SeqId,
    output: Result<TokenOutput, RequestError>,
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
        let batch = batch::build(&self.scheduler, &scheduled);
        let logits = self.model.forward(&batch)?;
        let drawn = self.score_and_draw(&scheduled, &logits);
        let (continued, events) = self.advance_choices(drawn);
        self.scheduler.apply(&scheduled, &continued);
        self.publish_stats();
        self.emit(events);
        Ok(())
    }

    /// Raw log-probabilities of each row first, then the sampler; each row on its own.
    fn score_and_draw(&self, scheduled: &SchedulerOutput, logits: &Logits) -> Vec<Drawn> {
        scheduled
            .scheduled
            .iter()
            .filter(|scheduled| scheduled.wants_logits)
            .enumerate()
            .map(|(row_index, scheduled)| Drawn {
                seq_id: scheduled.seq_id,
                output: self.score_and_draw_row(scheduled.seq_id, logits, row_index),
            })
            .collect()
    }

    fn score_and_draw_row(
        &self,
        seq_id: SeqId,
        logits: &Logits,
        row_index: usize,
    ) -> Result<TokenOutput, RequestError> {
        let (request, choice) = self.choice(seq_id);
        let position = self
            .scheduler
            .sequence(seq_id)
            .expect("a scheduled sequence is live until the step is applied")
            .next_position();
        let numerical_error = RequestError::NumericalError {
            position: position - 1,
        };
        if !logprobs::is_finite(logits, row_index) {
            return Err(numerical_error);
        }
        let key = DrawKey {
            seed: request.sampling.seed,
            choice_index: seq_id.choice_index,
            position,
        };
        let row = logits.row(row_index);
        let Some(params) = request.logprobs else {
            return Ok(TokenOutput {
                token_id: sampler::draw(row, &request.sampling, &choice.seen, key),
                logprobs: None,
            });
        };
        let num_top = params.top_logprobs as usize;
        match params.mode {
            LogprobsMode::Raw => {
                let raw = RawLogprobs::read(self.model.compute(), logits, row_index, num_top)
                    .map_err(|_| numerical_error)?;
                let token_id = sampler::draw(row, &request.sampling, &choice.seen, key);
                Ok(TokenOutput {
                    token_id,
                    logprobs: Some(raw.of_token(row[token_id as usize])),
                })
            }
            LogprobsMode::Processed => {
                let distribution = sampler::distribution(row, &request.sampling, &choice.seen);
                let token_id = sampler::draw_from(&distribution, key);
                Ok(TokenOutput {
                    token_id,
                    logprobs: Some(logprobs::processed(&distribution, token_id, num_top)),
                })
            }
        }
    }

    /// Takes every drawn token through its choice; the tokens of choices that go on, and the events.
    fn advance_choices(
        &mut self,
        drawn: Vec<Drawn>,
    ) -> (Vec<(SeqId, TokenId)>, Vec<AddressedEvent>) {
        let mut continued = Vec::new();
        let mut events = Vec::new();
        for Drawn { seq_id, output } in drawn {
            match output {
                Ok(output) => {
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
