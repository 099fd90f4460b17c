//! `reasoning_effort` and `thinking_token_budget`: how much the model may think before it answers.

use crate::error::FieldError;
use crate::fields::Fields;

/// How hard to think, in the words of the templates that ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReasoningEffort {
    /// Not at all.
    None,
    /// Hints, from less to more; what they do is the template's business.
    Hint(&'static str),
}

const EFFORTS: [(&str, ReasoningEffort); 7] = [
    ("none", ReasoningEffort::None),
    ("minimal", ReasoningEffort::Hint("minimal")),
    ("low", ReasoningEffort::Hint("low")),
    ("medium", ReasoningEffort::Hint("medium")),
    ("high", ReasoningEffort::Hint("high")),
    ("xhigh", ReasoningEffort::Hint("xhigh")),
    ("max", ReasoningEffort::Hint("max")),
];

/// How much the model may think; of no effect on one that does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReasoningParams {
    /// `reasoning_effort`.
    pub effort: Option<ReasoningEffort>,
    /// `thinking_token_budget`: tokens of reasoning at most; then it is closed by force.
    pub budget: Option<u32>,
}

impl ReasoningParams {
    pub(crate) fn read(body: &mut Fields) -> Result<Self, FieldError> {
        let budget = body.integer("thinking_token_budget", 0..=i64::from(u32::MAX))?;
        Ok(Self {
            effort: read_effort(body, "reasoning_effort")?,
            budget: budget.and_then(|budget| u32::try_from(budget).ok()),
        })
    }
}

/// Reads an effort.
pub(crate) fn read_effort(
    fields: &mut Fields,
    name: &str,
) -> Result<Option<ReasoningEffort>, FieldError> {
    fields.choice(name, &EFFORTS)
}
