//! A receipt computed again: the recorded tokens are read once more, given as they stand there, and what was drawn is
//! drawn again from its seed. The first value that comes out otherwise is named.

mod draws;
mod labels;
mod sink;

use std::fmt;

use assay_constrain::{ConstraintError, ConstraintFactory};
use assay_engine::{EngineHandle, RequestError, SubmitError};
use thiserror::Error;

use crate::hex_values::Bits;
use crate::identity::Identity;
use crate::record::{Output, Receipt};
use crate::sampling::SamplingError;

/// A receipt, and what it is computed with.
#[derive(Clone, Copy)]
pub struct Replay<'a> {
    /// What is computed again.
    pub receipt: &'a Receipt,
    /// Runs the receipt's model; see [`Replay::check_identity`].
    pub engine: &'a EngineHandle,
    /// Makes what compiles constraints for the model's vocabulary; asked only where the receipt has some.
    pub constraints: &'a dyn Fn() -> Result<ConstraintFactory, ConstraintError>,
    /// Whether nobody waits for the verdict any more; asked before each output.
    pub is_abandoned: &'a dyn Fn() -> bool,
}

/// How much was found to be the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Outputs of the receipt.
    pub num_outputs: usize,
    /// Tokens and ends of labels whose log-probabilities were read again.
    pub num_values: usize,
    /// Tokens that were drawn again.
    pub num_drawn: usize,
    /// Distributions.
    pub num_distributions: usize,
}

/// The first thing that is not as recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Where in the receipt: a path such as `outputs[0].logprob_bits[3]`.
    pub place: String,
    /// What stands there.
    pub recorded: String,
    /// What was found instead.
    pub found: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            place,
            recorded,
            found,
        } = self;
        write!(formatter, "{place}: recorded {recorded}, found {found}")
    }
}

/// Why a receipt is not confirmed.
#[derive(Clone, Debug, Error)]
pub enum ReplayError {
    /// It says something else.
    #[error("{0}")]
    Different(Difference),
    /// It asks for what its own model cannot do, so no model of it wrote it.
    #[error("{place}: {reason}")]
    Impossible {
        /// Where.
        place: String,
        /// Why not.
        reason: String,
    },
    /// The engine takes no work, or its limits are below what the receipt needs.
    #[error(transparent)]
    Engine(#[from] SubmitError),
    /// Nobody waits for the verdict any more.
    #[error("the replay was given up")]
    Abandoned,
    /// The engine failed.
    #[error(transparent)]
    Failed(#[from] RequestError),
}

impl Replay<'_> {
    /// Checks that the receipt is of the model that `identity` is, so that its numbers can be compared.
    ///
    /// # Errors
    /// [`ReplayError::Different`], naming model, tokenizer, template, numerics, profile or KV type.
    pub fn check_identity(receipt: &Receipt, identity: &Identity) -> Result<(), ReplayError> {
        let hash = |hash: &Option<crate::Sha256Hex>| {
            hash.as_ref()
                .map_or("none".to_owned(), |hash| hash.as_str().to_owned())
        };
        let rows = [
            (
                "numerics",
                receipt.numerics.clone(),
                identity.numerics.clone(),
            ),
            ("kv", receipt.kv.clone(), identity.kv.clone()),
            ("profile", receipt.profile.clone(), identity.profile.clone()),
            (
                "model.sha256",
                receipt.model.sha256.as_str().to_owned(),
                identity.model.sha256.as_str().to_owned(),
            ),
            (
                "model.architecture",
                receipt.model.architecture.clone(),
                identity.model.architecture.clone(),
            ),
            (
                "tokenizer_sha256",
                receipt.tokenizer_sha256.as_str().to_owned(),
                identity.tokenizer_sha256.as_str().to_owned(),
            ),
            (
                "template_sha256",
                hash(&receipt.template_sha256),
                hash(&identity.template_sha256),
            ),
            (
                "system_fingerprint",
                receipt.system_fingerprint.clone(),
                receipt.identity().fingerprint(),
            ),
        ];
        for (place, recorded, found) in rows {
            if recorded != found {
                return Err(different(place.to_owned(), recorded, found));
            }
        }
        Ok(())
    }

    /// Computes everything again.
    ///
    /// # Errors
    /// The first difference, or why it could not be computed.
    pub fn run(self) -> Result<Replayed, ReplayError> {
        let mut replayed = Replayed {
            num_outputs: self.receipt.outputs.len(),
            num_distributions: self.receipt.distribution_bits.len(),
            ..Replayed::default()
        };
        for (index, output) in self.receipt.outputs.iter().enumerate() {
            self.check_awaited()?;
            match output {
                Output::Scored { .. } | Output::Drawn { .. } => {
                    replayed.num_values += self.read_again(index, output)?;
                }
                Output::Labels { .. } => {}
            }
        }
        self.check_awaited()?;
        replayed.num_drawn = self.draw_again()?;
        self.check_awaited()?;
        let readings = self.read_labels()?;
        replayed.num_values += readings.num_values;
        self.check_distributions(&readings)?;
        Ok(replayed)
    }

    fn check_awaited(self) -> Result<(), ReplayError> {
        if (self.is_abandoned)() {
            return Err(ReplayError::Abandoned);
        }
        Ok(())
    }

    /// The prompt of an output, whole.
    fn prompt(self, output: &Output) -> Vec<u32> {
        [&self.receipt.prompt_token_ids, output.suffix_token_ids()].concat()
    }
}

/// A value that must come out as recorded, to the bit.
fn check_bits(
    place: impl FnOnce() -> String,
    recorded: Bits,
    found: f64,
) -> Result<(), ReplayError> {
    let found = Bits::from(found);
    if found == recorded {
        return Ok(());
    }
    Err(different(
        place(),
        format!("{recorded:?}"),
        format!("{found:?}"),
    ))
}

fn different(place: String, recorded: String, found: String) -> ReplayError {
    ReplayError::Different(Difference {
        place,
        recorded,
        found,
    })
}

fn impossible(place: impl Into<String>, reason: impl Into<String>) -> ReplayError {
    ReplayError::Impossible {
        place: place.into(),
        reason: reason.into(),
    }
}

impl From<SamplingError> for ReplayError {
    fn from(error: SamplingError) -> Self {
        impossible("sampling", error.to_string())
    }
}

/// A value that the engine does not take stands in the receipt; all else is of the moment.
fn not_taken(place: impl Into<String>, error: SubmitError) -> ReplayError {
    match error {
        SubmitError::Invalid(error) => impossible(place, error.to_string()),
        error => error.into(),
    }
}
