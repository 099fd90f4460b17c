//! `POST /v1/systemone`: the System One shape, in which questions and answers have ids. Fields that are ours alone
//! begin with `x_`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::MAX_QUESTIONS;
use super::question::{
    self, Answers, Choice, ChoiceValue, Level, NUM_CHOICES, NUM_LEVELS, Question,
};
use super::reading::{Boundary, Diagnostics, Reading};
use super::settings::{DecisionSettings, check_untaken};
use super::state::{State, text_or_json};
use super::validation::ValidationErrors;
use crate::error::FieldError;
use crate::fields::{Fields, wrong_type};
use crate::json;
use crate::spelled::Spelled;

/// A request whose fields are well-formed and in range.
#[derive(Clone, Debug, PartialEq)]
pub struct SystemOneRequest {
    /// Model asked for; `None` is the served one.
    pub model: Option<String>,
    /// What the questions are about.
    pub state: State,
    /// 1 to [`MAX_QUESTIONS`] questions, in the body's order.
    pub questions: Vec<NamedQuestion>,
    /// How they are read.
    pub settings: DecisionSettings,
    /// Whether the request brings images or other assets.
    pub has_assets: bool,
    /// Paths of fields that the server does not know.
    pub ignored: Vec<String>,
}

/// A question with what its answer repeats of it.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedQuestion {
    /// The caller's id.
    pub id: String,
    /// What is asked.
    pub question: Question,
    /// Of a score: its levels as they came.
    pub legend: Vec<Value>,
}

impl SystemOneRequest {
    /// Reads a request body.
    ///
    /// # Errors
    /// Not JSON, or the first field that is missing, of a wrong type, out of range or not supported.
    pub fn from_json(bytes: &[u8]) -> Result<Self, ValidationErrors> {
        let mut ids = Vec::new();
        Self::read(bytes, &mut ids).map_err(|error| ValidationErrors::new(&error, &ids))
    }

    fn read(bytes: &[u8], ids: &mut Vec<String>) -> Result<Self, FieldError> {
        let mut body = Fields::new("", json::parse(bytes)?)?;
        let spelled = Spelled::of_body(bytes);
        let state = body
            .take("state")
            .ok_or_else(|| FieldError::missing("state"))?;
        let spelled_state = spelled.and_then(|body| body.member("state"));
        let state = State::Text(text_or_json("state", &state, spelled_state)?);
        let questions = match body.take("questions") {
            Some(Value::Object(questions)) => questions,
            Some(other) => {
                return Err(wrong_type(
                    "questions",
                    "an object of questions by id",
                    &other,
                ));
            }
            None => return Err(FieldError::missing("questions")),
        };
        question::check_count(
            "questions",
            "questions",
            questions.len(),
            &(1..=MAX_QUESTIONS),
        )?;
        let spelled = spelled.and_then(|body| body.member("questions"));
        let spelled = spelled.map(Spelled::members).unwrap_or_default();
        let mut read = Vec::with_capacity(questions.len());
        for (index, (id, question)) in questions.into_iter().enumerate() {
            if id.is_empty() {
                let message = "`questions`: an id must not be empty";
                return Err(FieldError::new("questions", message));
            }
            ids.push(id.clone());
            let spelled = spelled.get(index).map(|(_, question)| *question);
            read.push(read_question(id, question, spelled)?);
        }
        let assets = body.take("assets");
        let has_assets = match &assets {
            None => false,
            Some(Value::Object(assets)) => !assets.is_empty(),
            Some(other) => return Err(wrong_type("assets", "an object of assets", other)),
        };
        Ok(Self {
            model: body.string("model")?,
            state,
            questions: read,
            settings: DecisionSettings::read(&mut body)?,
            has_assets,
            ignored: body.untaken().collect(),
        })
    }

    /// Ids of the questions, in order.
    pub fn ids(&self) -> Vec<String> {
        self.questions
            .iter()
            .map(|named| named.id.clone())
            .collect()
    }
}

fn read_question(
    id: String,
    question: Value,
    spelled: Option<Spelled<'_>>,
) -> Result<NamedQuestion, FieldError> {
    let path = format!("questions.{id}");
    let mut fields = Fields::new(path.clone(), question)?;
    let kinds = [
        ("noul", Kind::Noul),
        ("choice", Kind::Choice),
        ("score", Kind::Score),
    ];
    let kind = fields.choice("type", &kinds)?;
    let kind = kind.ok_or_else(|| FieldError::missing(fields.path_of("type")))?;
    let instructions_path = fields.path_of("instructions");
    let instructions = fields.take("instructions").map(|value| {
        let spelled = spelled.and_then(|question| question.member("instructions"));
        text_or_json(&instructions_path, &value, spelled)
    });
    let instructions = instructions.transpose()?;
    let criteria = Criteria {
        path: fields.path_of("criteria"),
        value: fields.take("criteria"),
        spelled: spelled.and_then(|question| question.member("criteria")),
    };
    check_untaken(&fields)?;
    let mut legend = Vec::new();
    let answers = match kind {
        Kind::Noul => criteria.yes_no()?,
        Kind::Choice => criteria.choices()?,
        Kind::Score => criteria.levels(&mut legend)?,
    };
    let says_nothing = instructions.is_none()
        && matches!(
            answers,
            Answers::YesNo {
                yes: None,
                no: None
            }
        );
    if says_nothing {
        return Err(FieldError::missing(instructions_path));
    }
    let question = Question {
        path,
        instructions,
        answers,
        described: None,
    };
    Ok(NamedQuestion {
        id,
        question,
        legend,
    })
}

#[derive(Clone, Copy)]
enum Kind {
    Noul,
    Choice,
    Score,
}

/// The `criteria` of a question.
struct Criteria<'t> {
    path: String,
    value: Option<Value>,
    spelled: Option<Spelled<'t>>,
}

impl Criteria<'_> {
    fn yes_no(self) -> Result<Answers, FieldError> {
        let (mut yes, mut no) = (None, None);
        if let Some(value) = self.value {
            let mut fields = Fields::new(self.path, value)?;
            for (name, side) in [("true", &mut yes), ("false", &mut no)] {
                let path = fields.path_of(name);
                let spelled = self.spelled.and_then(|criteria| criteria.member(name));
                if let Some(value) = fields.take(name) {
                    *side = Some(text_or_json(&path, &value, spelled)?);
                }
            }
            check_untaken(&fields)?;
        }
        Ok(Answers::YesNo { yes, no })
    }

    fn choices(self) -> Result<Answers, FieldError> {
        let path = self.path;
        let criteria = match self.value {
            Some(Value::Object(criteria)) => criteria,
            Some(other) => return Err(wrong_type(&path, "an object of options", &other)),
            None => return Err(FieldError::missing(path)),
        };
        question::check_count(&path, "options", criteria.len(), &NUM_CHOICES)?;
        let spelled = self.spelled.map(Spelled::members).unwrap_or_default();
        let numbered = criteria.into_iter().enumerate();
        let choices = numbered.map(|(index, (name, description))| {
            let path = format!("{path}.{name}");
            let spelled = spelled.get(index).map(|(_, description)| *description);
            let description = match &description {
                Value::Null => None,
                described => Some(text_or_json(&path, described, spelled)?),
            };
            Ok(Choice {
                path,
                value: ChoiceValue::Text(name),
                description,
            })
        });
        let choices: Vec<Choice> = choices.collect::<Result<_, FieldError>>()?;
        question::check_distinct(&choices)?;
        Ok(Answers::Choice(choices))
    }

    fn levels(self, legend: &mut Vec<Value>) -> Result<Answers, FieldError> {
        let path = self.path;
        let criteria = match self.value {
            Some(Value::Array(criteria)) => criteria,
            Some(other) => return Err(wrong_type(&path, "an array of levels", &other)),
            None => return Err(FieldError::missing(path)),
        };
        question::check_count(&path, "levels", criteria.len(), &NUM_LEVELS)?;
        let spelled = self.spelled.map(Spelled::elements).unwrap_or_default();
        let numbered = criteria.iter().enumerate();
        let levels = numbered.map(|(index, level)| {
            let path = format!("{path}[{index}]");
            let label = text_or_json(&path, level, spelled.get(index).copied())?;
            Ok(Level {
                label,
                description: None,
            })
        });
        let levels = levels.collect::<Result<_, FieldError>>()?;
        *legend = criteria;
        Ok(Answers::Score(levels))
    }
}

/// The reply.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SystemOneResponse {
    /// The model that answered.
    pub model: String,
    /// In the order of the questions.
    pub answers: Ordered<Answer>,
    /// Token counts.
    pub usage: SystemOneUsage,
    /// Name of the reply.
    pub x_id: String,
    /// Weights, numerics and version in one short hash.
    pub x_system_fingerprint: String,
    /// Name and version of the way that questions are put to the model.
    pub x_prompt_format: String,
}

/// Token counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SystemOneUsage {
    /// Tokens of the prompts; what questions share is counted once.
    pub input_tokens: u64,
    /// Tokens of the labels that were read.
    pub output_tokens: u64,
    /// Input tokens that were read from the prefix cache.
    pub x_cached_tokens: u64,
}

/// An object whose members keep their order.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(inline)]
pub struct Ordered<T>(#[schemars(with = "BTreeMap<String, T>")] pub Vec<(String, T)>);

impl<T: Serialize> Serialize for Ordered<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "SystemOneAnswer")]
pub struct Answer {
    /// The answer proper.
    #[serde(flatten)]
    pub body: AnswerBody,
    /// Probability that the model says any of the answers at all.
    pub x_label_mass: f64,
    /// How the labels join the prompt.
    pub x_boundary: Boundary,
    /// Probabilities before rotations and prior, in the order of the answers; yes comes first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub x_raw_probabilities: Option<Vec<f64>>,
    /// Where they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub x_diagnostics: Option<Diagnostics>,
}

/// An answer by its type.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
#[schemars(rename = "SystemOneAnswerBody")]
pub enum AnswerBody {
    /// Yes or no.
    Noul {
        /// Probability of yes.
        noul: f64,
    },
    /// One of several.
    Choice {
        /// The most likely.
        choice: String,
        /// By option.
        probabilities: Ordered<f64>,
        /// 0 at an even guess, 1 at certainty.
        confidence: f64,
    },
    /// A level.
    Score {
        /// Sum of each level times its probability.
        score: f64,
        /// The levels as they came, by number.
        legend: Ordered<Value>,
        /// By number.
        probabilities: Ordered<f64>,
        /// 0 at an even spread, 1 at certainty.
        confidence: f64,
    },
    /// The answers' mass is below what was asked for.
    Refusal,
}

impl Answer {
    /// The answer to `named` that `reading` is.
    pub fn new(named: &NamedQuestion, reading: Reading) -> Self {
        let numbered = || (0..reading.probabilities.len()).map(|level| level.to_string());
        let probabilities = reading.probabilities.iter().copied();
        let body = match &named.question.answers {
            _ if reading.is_refused => AnswerBody::Refusal,
            Answers::YesNo { .. } => AnswerBody::Noul {
                noul: reading.probabilities[0],
            },
            Answers::Choice(choices) => {
                let names = choices.iter().map(|choice| choice.value.text().to_owned());
                AnswerBody::Choice {
                    choice: choices[reading.mode].value.text().to_owned(),
                    probabilities: Ordered(names.zip(probabilities).collect()),
                    confidence: reading.confidence,
                }
            }
            Answers::Score(_) => AnswerBody::Score {
                score: reading.score,
                legend: Ordered(numbered().zip(named.legend.iter().cloned()).collect()),
                probabilities: Ordered(numbered().zip(probabilities).collect()),
                confidence: reading.confidence,
            },
        };
        Self {
            body,
            x_label_mass: reading.label_mass,
            x_boundary: reading.boundary,
            x_raw_probabilities: reading.raw_probabilities,
            x_diagnostics: reading.diagnostics,
        }
    }
}
