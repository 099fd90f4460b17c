//! One step of the engine: its stages, in order.

use assay_models::ForwardError;

use crate::advance::Advanced;
use crate::batch;
use crate::engine_core::EngineCore;

impl EngineCore {
    /// Runs one forward pass over whatever is scheduled, and all that follows from it.
    ///
    /// # Errors
    /// The model's, which is a broken invariant: no request can cause it.
    pub(crate) fn step(&mut self) -> Result<(), ForwardError> {
        self.drop_gone_clients();
        self.answer_from_kept_rows();
        let mut scheduled = self.schedule();
        if scheduled.scheduled.is_empty() {
            return Ok(());
        }
        self.announce(&scheduled);
        self.draft(&mut scheduled)?;
        if let Some(observer) = &mut self.observer {
            observer.scheduled(&self.scheduler, &scheduled);
        }
        let batch = batch::build(&self.scheduler, &scheduled);
        self.model.forward_layers(&batch.forward)?;
        let Advanced { continued, events } = self.advance(&batch.logit_rows);
        self.scheduler.apply(&scheduled, &continued);
        if let Some(observer) = &mut self.observer {
            observer.booked(&self.scheduler, &scheduled, &continued);
        }
        self.finish_ended(&scheduled);
        self.publish_stats();
        self.emit(events);
        Ok(())
    }
}
