//! `POST /v1/replay`: a receipt computed again on this server's model.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::error::FieldError;
use crate::fields::{Fields, wrong_type};
use crate::json;

/// A request whose fields are well-formed.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayRequest {
    /// The sealed receipt, not yet looked into.
    pub receipt: Value,
    /// Paths of fields that the server does not know.
    pub ignored: Vec<String>,
}

impl ReplayRequest {
    /// Reads a request body.
    ///
    /// # Errors
    /// Not JSON, or `receipt` is missing or no object.
    pub fn from_json(body: &[u8]) -> Result<Self, FieldError> {
        let mut body = Fields::new("", json::parse(body)?)?;
        let receipt = match body.take("receipt") {
            None => return Err(FieldError::missing("receipt")),
            Some(receipt @ Value::Object(_)) => receipt,
            Some(other) => return Err(wrong_type("receipt", "an object", &other)),
        };
        let ignored = body.untaken().collect();
        Ok(Self { receipt, ignored })
    }
}

/// What came of a receipt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "result", rename_all = "lowercase")]
pub enum ReplayVerdict {
    /// Every bit came out as recorded.
    Identical {
        /// Outputs of the receipt.
        outputs: usize,
        /// Tokens and ends of labels whose log-probabilities were read again.
        values: usize,
        /// Tokens that were drawn again.
        drawn: usize,
        /// Distributions that were made again.
        distributions: usize,
    },
    /// It is of another model, or other bits came out; the first that did.
    Different {
        /// Where in the receipt: a path such as `outputs[0].logprob_bits[3]`.
        place: String,
        /// What stands there.
        recorded: String,
        /// What was found instead.
        found: String,
    },
    /// It cannot be what a server wrote, or was changed since.
    Broken {
        /// Where in it.
        place: String,
        /// Why.
        reason: String,
    },
}
