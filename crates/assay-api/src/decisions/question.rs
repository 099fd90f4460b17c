//! A typed question, whatever dialect asked it.

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::error::FieldError;
use crate::json::quote;

/// Options that a choice may have.
pub const NUM_CHOICES: std::ops::RangeInclusive<usize> = 2..=255;

/// Levels that a score may have.
pub const NUM_LEVELS: std::ops::RangeInclusive<usize> = 2..=101;

/// What is asked, and what may be answered. A question's name is not here: the model never sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Where it stands in the body, such as `questions[3]` or `questions.tone`.
    pub path: String,
    /// What is asked; a structured text is its compact JSON.
    pub instructions: Option<String>,
    /// What may be answered.
    pub answers: Answers,
    /// What the options are, where the question says so instead of listing them: `an integer from 0 to 99`.
    pub described: Option<String>,
}

impl Question {
    /// Whether the options stand in the question in an order that could be another.
    pub fn has_free_order(&self) -> bool {
        self.described.is_none() && !matches!(self.answers, Answers::Score(_))
    }
}

/// What may be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answers {
    /// Yes or no.
    YesNo {
        /// What counts as yes.
        yes: Option<String>,
        /// What counts as no.
        no: Option<String>,
    },
    /// One of [`NUM_CHOICES`] options.
    Choice(Vec<Choice>),
    /// One of [`NUM_LEVELS`] levels, numbered from 0.
    Score(Vec<Level>),
}

impl Answers {
    /// How many answers there are.
    pub fn count(&self) -> usize {
        match self {
            Self::YesNo { .. } => 2,
            Self::Choice(choices) => choices.len(),
            Self::Score(levels) => levels.len(),
        }
    }
}

/// One option of a choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Where it stands in the body.
    pub path: String,
    /// What is answered.
    pub value: ChoiceValue,
    /// When it applies.
    pub description: Option<String>,
}

/// The value of an option; `true` and `"true"` are two values.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(untagged)]
pub enum ChoiceValue {
    /// A string.
    Text(String),
    /// A boolean.
    Flag(bool),
}

impl ChoiceValue {
    /// The words that the model reads and answers.
    pub fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Flag(true) => "true",
            Self::Flag(false) => "false",
        }
    }
}

impl Serialize for ChoiceValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Flag(flag) => serializer.serialize_bool(*flag),
        }
    }
}

/// One level of a score.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// What it is called.
    pub label: String,
    /// When it applies.
    pub description: Option<String>,
}

/// Checks an option's or a level's count, `found` at `path`, which holds `what`.
pub(super) fn check_count(
    path: &str,
    what: &str,
    found: usize,
    range: &std::ops::RangeInclusive<usize>,
) -> Result<(), FieldError> {
    if range.contains(&found) {
        return Ok(());
    }
    let (least, most) = (range.start(), range.end());
    let message = format!("`{path}`: must hold {least} to {most} {what}, not {found}");
    Err(FieldError::new(path, message))
}

/// Checks that options can be told apart by their words, which is all that the model sees of them.
pub(super) fn check_distinct(choices: &[Choice]) -> Result<(), FieldError> {
    let mut by_text = std::collections::BTreeMap::new();
    for choice in choices {
        let path = &choice.path;
        if choice.value.text().is_empty() {
            let message =
                format!("`{path}`: must not be empty: an option is answered by its words");
            return Err(FieldError::new(path, message));
        }
        if let Some(first) = by_text.insert(choice.value.text(), choice) {
            let quoted = quote(choice.value.text());
            let message = format!(
                "`{path}`: reads {quoted} like `{}`; options must differ in their words",
                first.path
            );
            return Err(FieldError::new(path, message));
        }
    }
    Ok(())
}
