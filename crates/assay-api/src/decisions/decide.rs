//! `POST /v1/decide`: a JSON Schema whose most likely instance, and its probability, are read from the model.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::input::read_items;
use super::openai::DecisionUsage;
use super::reading::{Boundary, Diagnostics};
use super::schema::{Node, read_schema};
use super::settings::{DecisionSettings, check_untaken};
use super::state::{State, text_or_json};
use crate::error::FieldError;
use crate::fields::Fields;
use crate::json;
use crate::spelled::Spelled;

/// Most beams of a search.
pub const MAX_BEAMS: i64 = 64;

/// Beams where the request names none.
const DEFAULT_BEAMS: usize = 8;

/// A request whose fields are well-formed and in range.
#[derive(Clone, Debug, PartialEq)]
pub struct DecideRequest {
    /// Model asked for; `None` is the served one.
    pub model: Option<String>,
    /// What the schema is filled in about.
    pub state: State,
    /// What requests call it: `state` or `messages`.
    pub state_field: &'static str,
    /// What is asked.
    pub schema: Node,
    /// Unfinished instances that are followed at a time.
    pub num_beams: usize,
    /// How questions are read.
    pub settings: DecisionSettings,
    /// Paths of fields that the server does not know.
    pub ignored: Vec<String>,
}

impl DecideRequest {
    /// Reads a request body.
    ///
    /// # Errors
    /// Not JSON, a field that is missing, of a wrong type or out of range, or a schema of which not everything can be
    /// honoured: named by keyword and path.
    pub fn from_json(bytes: &[u8]) -> Result<Self, FieldError> {
        let mut body = Fields::new("", json::parse(bytes)?)?;
        let spelled = Spelled::of_body(bytes);
        let mut ignored = Vec::new();
        let (state_field, state) = match (body.take("state"), body.take("messages")) {
            (Some(_), Some(_)) => {
                let message =
                    "`messages`: may not stand beside `state`: one of them is asked about";
                return Err(FieldError::new("messages", message));
            }
            (Some(state), None) => {
                let spelled = spelled.and_then(|body| body.member("state"));
                (
                    "state",
                    State::Text(text_or_json("state", &state, spelled)?),
                )
            }
            (None, messages) => {
                let spelled = spelled.and_then(|body| body.member("messages"));
                (
                    "messages",
                    read_items("messages", messages, spelled, &mut ignored)?,
                )
            }
        };
        let instructions = body.string("instructions")?;
        let schema = body
            .take("schema")
            .ok_or_else(|| FieldError::missing("schema"))?;
        let schema = read_schema("schema", schema, instructions)?;
        let num_beams = match body.object("search")? {
            None => DEFAULT_BEAMS,
            Some(mut search) => {
                let beams = search.integer("beams", 1..=MAX_BEAMS)?;
                check_untaken(&search)?;
                beams
                    .and_then(|beams| usize::try_from(beams).ok())
                    .unwrap_or(DEFAULT_BEAMS)
            }
        };
        let settings = DecisionSettings::read(&mut body)?;
        let model = body.string("model")?;
        ignored.splice(0..0, body.untaken());
        Ok(Self {
            model,
            state,
            state_field,
            schema,
            num_beams,
            settings,
            ignored,
        })
    }
}

/// The reply.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Decided {
    /// Name of the reply.
    pub id: String,
    /// Always `decided`.
    #[schemars(extend("const" = "decided"))]
    pub object: String,
    /// Seconds since 1970.
    pub created: u64,
    /// The model that answered.
    pub model: String,
    /// The most likely instance of the schema that was found; null where a field was refused.
    pub answer: Value,
    /// Probability of it among all instances: the product of its fields'.
    pub probability: f64,
    /// Its fields in the order that they were asked, each given those before it.
    pub fields: Vec<DecidedField>,
    /// The most likely instances, the answer first.
    pub instances: Vec<Instance>,
    /// Probability of all instances that were not followed; none of them is likelier than this.
    pub unexplored_mass: f64,
    /// Where a field's `label_mass` is below what was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// Token counts.
    pub usage: DecisionUsage,
    /// Weights, numerics and version in one short hash.
    pub system_fingerprint: String,
    /// Name and version of the way that questions are put to the model.
    pub prompt_format: String,
}

/// An instance of the schema.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Instance {
    /// The whole value.
    pub value: Value,
    /// Its probability among all instances.
    pub probability: f64,
}

/// One field of the answer.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DecidedField {
    /// JSON pointer of the field in the answer; of an array, of the item that was asked for.
    pub path: String,
    /// Its value; of an array's end, null.
    pub value: Value,
    /// Probability of the value, given the fields before it.
    pub probability: f64,
    /// Its distribution, in the schema's order.
    pub distribution: Vec<ValueProbability>,
    /// Of numbers: what the distribution comes to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// 0 at an even guess, 1 at certainty.
    pub confidence: f64,
    /// Probability that the model says any of the values at all.
    pub label_mass: f64,
    /// How the labels join the prompt.
    pub boundary: Boundary,
    /// Probabilities before rotations and prior.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_probabilities: Option<Vec<f64>>,
    /// Where they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diagnostics: Option<Diagnostics>,
}

/// One value's probability.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ValueProbability {
    /// The value; of an array's end, null.
    pub value: Value,
    /// Its probability.
    pub probability: f64,
}

/// What a distribution over ascending numbers comes to.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "DistributionSummary")]
pub struct Summary {
    /// Sum of each value times its probability.
    pub mean: f64,
    /// The first value up to which half of the probability lies.
    pub median: Value,
    /// The same for other shares.
    pub quantiles: Quantiles,
}

/// The first values up to which these shares of the probability lie.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Quantiles {
    /// 5 %.
    pub p05: Value,
    /// 25 %.
    pub p25: Value,
    /// 75 %.
    pub p75: Value,
    /// 95 %.
    pub p95: Value,
}

impl Summary {
    /// Of `values`, ascending, and their probabilities.
    pub fn new(values: &[Value], probabilities: &[f64]) -> Self {
        let quantile = |share: f64| {
            let mut below = 0.0;
            let reached = probabilities.iter().position(|p| {
                below += p;
                below >= share
            });
            let index = reached.unwrap_or(values.len().saturating_sub(1));
            values.get(index).cloned().unwrap_or(Value::Null)
        };
        let pairs = values.iter().zip(probabilities);
        Self {
            mean: pairs
                .map(|(value, p)| value.as_f64().unwrap_or(0.0) * p)
                .sum(),
            median: quantile(0.5),
            quantiles: Quantiles {
                p05: quantile(0.05),
                p25: quantile(0.25),
                p75: quantile(0.75),
                p95: quantile(0.95),
            },
        }
    }
}
