//! What of a plan's readings goes into a receipt.

use assay_engine::decision::{DecisionReading, DecisionRequest};
use assay_receipt::{Reading, Recording};

use super::{Plan, PriorOf};
use crate::error::ApiError;

impl Plan {
    /// Adds what was read for this plan's requests; by ask, what its distribution is made of.
    ///
    /// # Errors
    /// The readings do not belong to this plan.
    pub(crate) fn record(
        &self,
        requests: &[DecisionRequest],
        read: &[DecisionReading],
        recording: &mut Recording,
    ) -> Result<Vec<Vec<Reading>>, ApiError> {
        let mut outputs: Vec<Option<usize>> = vec![None; self.owners.len()];
        let groups = self.groups.iter().zip(requests).zip(read);
        for ((group, request), read) in groups {
            let questions = request.questions.iter().zip(&read.questions);
            for (index, (question, reading)) in group.iter().zip(questions) {
                if let Some(output) = outputs.get_mut(*index) {
                    *output = Some(recording.add_labels(question, reading));
                }
            }
        }
        let output = |index: usize| {
            let found = outputs.get(index).copied().flatten();
            found.ok_or_else(|| ApiError::Internal(format!("no recorded reading {index}")))
        };
        let asks = self.asks.iter().map(|planned| {
            let readings = planned.orders.iter().map(|order| {
                Ok(Reading {
                    output: output(order.index)?,
                    prior: match &order.prior {
                        None => None,
                        Some(PriorOf::Read(index, _)) => Some(output(*index)?),
                        Some(PriorOf::Known(_)) => {
                            let detail = "a prior from before in a receipt";
                            return Err(ApiError::Internal(detail.to_owned()));
                        }
                    },
                })
            });
            readings.collect()
        });
        asks.collect()
    }
}
