//! A look at every step from outside: for tests and soaks, which hold what the engine does against a naive model.
//!
//! An observer changes nothing: it sees borrowed state. It runs on the engine's thread, so what it takes time for,
//! the engine waits for.

use assay_models::TokenId;

use crate::scheduler::{Scheduler, SchedulerOutput};
use crate::sequence::SeqId;

/// Sees each step twice.
pub trait StepObserver: Send {
    /// Before the pass: `output` is about to be computed, through the block tables as they stand in `scheduler`.
    fn scheduled(&mut self, scheduler: &Scheduler, output: &SchedulerOutput);

    /// After the step was booked: `drawn` are the tokens that sequences go on with. Sequences that ended with the step
    /// still stand in `scheduler`; those of failed requests do not.
    fn booked(
        &mut self,
        scheduler: &Scheduler,
        output: &SchedulerOutput,
        drawn: &[(SeqId, TokenId)],
    );
}
