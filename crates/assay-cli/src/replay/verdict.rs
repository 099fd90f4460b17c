//! What is said of a receipt.

use std::fmt;

use assay_receipt::{Difference, Replayed};
use serde_json::{Value, json};

/// What came of a receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Every bit came out as recorded.
    Identical(Replayed),
    /// The first thing that did not.
    Different(Difference),
    /// It cannot be what a server wrote.
    Broken {
        /// Where in it.
        place: String,
        /// Why.
        reason: String,
    },
}

impl Verdict {
    pub(super) fn broken(place: &str, reason: String) -> Self {
        Self::Broken {
            place: place.to_owned(),
            reason,
        }
    }

    pub(super) fn different(place: &str, recorded: &str, found: &str) -> Self {
        Self::Different(Difference {
            place: place.to_owned(),
            recorded: recorded.to_owned(),
            found: found.to_owned(),
        })
    }

    pub(crate) fn is_identical(&self) -> bool {
        matches!(self, Self::Identical(_))
    }

    /// The same as one object: `result`, and what goes with it.
    pub(crate) fn json(&self) -> Value {
        match self {
            Self::Identical(replayed) => json!({
                "result": "identical",
                "outputs": replayed.num_outputs,
                "values": replayed.num_values,
                "drawn": replayed.num_drawn,
                "distributions": replayed.num_distributions,
            }),
            Self::Different(Difference {
                place,
                recorded,
                found,
            }) => json!({
                "result": "different",
                "place": place,
                "recorded": recorded,
                "found": found,
            }),
            Self::Broken { place, reason } => json!({
                "result": "broken",
                "place": place,
                "reason": reason,
            }),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Identical(replayed) => write!(
                formatter,
                "identical: {} values, {} drawn tokens, {} distributions of {} outputs",
                replayed.num_values,
                replayed.num_drawn,
                replayed.num_distributions,
                replayed.num_outputs
            ),
            Self::Different(difference) => write!(formatter, "different: {difference}"),
            Self::Broken { place, reason } => write!(formatter, "broken: {place}: {reason}"),
        }
    }
}
