//! One decision under way: its questions go to the engine, in one round or several, and come back as distributions.

use std::sync::Arc;
use std::time::Instant;

use assay_api::decisions::DecisionSettings;
use assay_engine::decision::DecideError;
use assay_receipt::Recording;
use serde_json::Value;

use crate::convert::decisions::plan::{Ask, Outcome, Plan};
use crate::convert::decisions::usage::Counts;
use crate::deadline::Deadline;
use crate::error::ApiError;
use crate::lifecycle::Running;
use crate::metrics::RequestTimer;
use crate::places::TextWork;
use crate::receipts::ReceiptOrder;
use crate::sink::OutcomeSink;
use crate::state::AppState;

/// Dropped before its end, it is a client that has gone: the engine frees the decision's place.
pub(crate) struct Deciding {
    app: AppState,
    timer: RequestTimer,
    /// What its receipt is made of, where one is.
    recorded: Option<(ReceiptOrder, Recording)>,
    deadline: Deadline,
    /// A draining server waits for it.
    _running: Running,
}

impl Deciding {
    /// Counts a decision in, whose last byte came at `received`.
    ///
    /// # Errors
    /// The server drains.
    pub(crate) fn begin(
        app: &AppState,
        received: Instant,
        receipt: Option<ReceiptOrder>,
    ) -> Result<Self, ApiError> {
        let timer = RequestTimer::start(Arc::clone(app.metrics()), received);
        let Some(running) = app.lifecycle().begin() else {
            app.metrics().count_refused();
            return Err(ApiError::Draining);
        };
        Ok(Self {
            app: app.clone(),
            timer,
            recorded: receipt.map(|order| (order, Recording::default())),
            deadline: app.deadline(received),
            _running: running,
        })
    }

    /// Reads the questions together; `state_field` is what the request calls the state.
    ///
    /// # Errors
    /// The questions do not suit the model, there is no place for them, or reading failed.
    pub(crate) async fn read(
        &mut self,
        asks: Vec<Ask>,
        settings: &DecisionSettings,
        state_field: &'static str,
    ) -> Result<(Vec<Outcome>, Counts), ApiError> {
        let (settings, app) = (settings.clone(), self.app.clone());
        let is_recorded = self.recorded.is_some();
        let planned = self.app.with_text(TextWork::Words, move |text, limits| {
            // A receipt holds the reading of every prior, so none comes from before.
            let priors = (!is_recorded).then(|| app.priors());
            Plan::new(&asks, &settings, state_field, text, priors, limits)
        });
        let (plan, requests) = self.deadline.bound(planned).await??;
        let asked = if is_recorded {
            requests.clone()
        } else {
            Vec::new()
        };
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
        let Some((_, recording)) = &mut self.recorded else {
            return Ok((
                plan.outcomes(readings, self.app.priors(), self.app.text())?,
                counts,
            ));
        };
        let made_of = plan.record(&asked, &readings, recording)?;
        let outcomes = plan.outcomes(readings, self.app.priors(), self.app.text())?;
        for (readings, outcome) in made_of.into_iter().zip(&outcomes) {
            recording.add_distribution(readings, &outcome.reading.probabilities);
        }
        Ok((outcomes, counts))
    }

    /// Ends the decision's time; its receipt, where the client gets it. It is in the ledger, where there is one.
    ///
    /// # Errors
    /// The ledger was not written: the answer must not leave.
    pub(crate) async fn complete(self) -> Result<Option<Value>, ApiError> {
        let issued = match self.recorded {
            Some((order, recording)) => self.app.issue_receipt(order, recording).await?,
            None => None,
        };
        self.timer.completed();
        Ok(issued)
    }
}
