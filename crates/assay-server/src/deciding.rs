//! One decision under way: its questions go to the engine, in one round or several, and come back as distributions.

use std::sync::Arc;
use std::time::Instant;

use assay_api::decisions::DecisionSettings;
use assay_engine::decision::DecideError;

use crate::convert::decisions::plan::{Ask, Outcome, Plan};
use crate::convert::decisions::usage::Counts;
use crate::deadline::Deadline;
use crate::error::ApiError;
use crate::lifecycle::Running;
use crate::metrics::RequestTimer;
use crate::places::TextWork;
use crate::sink::OutcomeSink;
use crate::state::AppState;

/// Dropped before its end, it is a client that has gone: the engine frees the decision's place.
pub(crate) struct Deciding {
    app: AppState,
    timer: RequestTimer,
    deadline: Deadline,
    /// A draining server waits for it.
    _running: Running,
}

impl Deciding {
    /// Counts a decision in, whose last byte came at `received`.
    ///
    /// # Errors
    /// The server drains.
    pub(crate) fn begin(app: &AppState, received: Instant) -> Result<Self, ApiError> {
        let timer = RequestTimer::start(Arc::clone(app.metrics()), received);
        let Some(running) = app.lifecycle().begin() else {
            app.metrics().count_refused();
            return Err(ApiError::Draining);
        };
        Ok(Self {
            app: app.clone(),
            timer,
            deadline: app.deadline(received),
            _running: running,
        })
    }

    /// Reads the questions together; `state_field` is what the request calls the state.
    ///
    /// # Errors
    /// The questions do not suit the model, there is no place for them, or reading failed.
    pub(crate) async fn read(
        &self,
        asks: Vec<Ask>,
        settings: &DecisionSettings,
        state_field: &'static str,
    ) -> Result<(Vec<Outcome>, Counts), ApiError> {
        let (settings, app) = (settings.clone(), self.app.clone());
        let planned = self.app.with_text(TextWork::Words, move |text, limits| {
            Plan::new(&asks, &settings, state_field, text, app.priors(), limits)
        });
        let (plan, requests) = self.deadline.bound(planned).await??;
        let mut pending = Vec::with_capacity(requests.len());
        for (index, request) in requests.into_iter().enumerate() {
            let (sink, outcome) = OutcomeSink::channel();
            match self.app.engine().decide(request, Box::new(sink)) {
                Ok(()) => pending.push(outcome),
                Err(DecideError::Invalid(error)) => return Err(plan.refusal(index, &error)),
                Err(DecideError::Submit(error)) => return Err(self.app.not_taken(error)),
            }
        }
        let mut counts = Counts::default();
        let mut readings = Vec::with_capacity(pending.len());
        for outcome in pending {
            let outcome = self.deadline.bound(outcome).await?;
            let outcome = outcome.map_err(|_| self.app.cause(ApiError::EngineStopped))?;
            let reading = outcome.map_err(|error| self.app.cause(error.into()))?;
            counts.add(Counts::of(&reading));
            readings.push(reading);
        }
        Ok((plan.outcomes(readings, self.app.priors())?, counts))
    }

    /// Ends the decision's time.
    pub(crate) fn complete(self) {
        self.timer.completed();
    }
}
