//! `POST /v1/decisions`: the OpenAI shape.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::MAX_QUESTIONS;
use super::input::{read_items, read_parts};
use super::question::{
    self, Answers, Choice, ChoiceValue, Level, NUM_CHOICES, NUM_LEVELS, Question,
};
use super::reading::{Boundary, Diagnostics, Reading};
use super::settings::{DecisionSettings, check_untaken};
use super::state::State;
use crate::error::FieldError;
use crate::fields::{Fields, wrong_type};
use crate::json;
use crate::spelled::Spelled;

/// Fields that change no answer.
const HARMLESS: [&str; 6] = [
    "metadata",
    "prompt_cache_key",
    "prompt_cache_options",
    "safety_identifier",
    "store",
    "user",
];

/// A request whose fields are well-formed and in range.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionRequest {
    /// Model asked for; `None` is the served one.
    pub model: Option<String>,
    /// What the questions are about.
    pub state: State,
    /// 1 to [`MAX_QUESTIONS`] questions, each with its name.
    pub questions: Vec<(Option<String>, Question)>,
    /// How they are read.
    pub settings: DecisionSettings,
    /// Paths of fields that the server does not know.
    pub ignored: Vec<String>,
}

impl DecisionRequest {
    /// Reads a request body.
    ///
    /// # Errors
    /// Not JSON, or the first field that is missing, of a wrong type, out of range or not supported.
    pub fn from_json(bytes: &[u8]) -> Result<Self, FieldError> {
        let mut body = Fields::new("", json::parse(bytes)?)?;
        let spelled = Spelled::of_body(bytes);
        let mut ignored = Vec::new();
        let model = body.string("model")?;
        let spelled_input = spelled.and_then(|body| body.member("input"));
        let state = read_items("input", body.take("input"), spelled_input, &mut ignored)?;
        let questions = body.array("questions")?;
        let spelled = spelled.and_then(|body| body.member("questions"));
        let questions = read_questions(questions, spelled, &mut ignored)?;
        let settings = DecisionSettings::read(&mut body)?;
        body.harmless(&HARMLESS);
        ignored.splice(0..0, body.untaken());
        Ok(Self {
            model,
            state,
            questions,
            settings,
            ignored,
        })
    }
}

fn read_questions(
    questions: Option<Vec<Value>>,
    spelled: Option<Spelled<'_>>,
    ignored: &mut Vec<String>,
) -> Result<Vec<(Option<String>, Question)>, FieldError> {
    let questions = questions.ok_or_else(|| FieldError::missing("questions"))?;
    question::check_count(
        "questions",
        "questions",
        questions.len(),
        &(1..=MAX_QUESTIONS),
    )?;
    let spelled = spelled.map(Spelled::elements).unwrap_or_default();
    let mut read = Vec::with_capacity(questions.len());
    for (index, question) in questions.into_iter().enumerate() {
        let spelled = spelled.get(index).copied();
        read.push(read_question(
            format!("questions[{index}]"),
            question,
            spelled,
            ignored,
        )?);
    }
    Ok(read)
}

fn read_question(
    path: String,
    question: Value,
    spelled: Option<Spelled<'_>>,
    ignored: &mut Vec<String>,
) -> Result<(Option<String>, Question), FieldError> {
    let mut fields = Fields::new(path.clone(), question)?;
    let kinds = [("predicate", 0), ("choice", 1), ("score", 2)];
    let kind = fields.choice("type", &kinds)?;
    let kind = kind.ok_or_else(|| FieldError::missing(fields.path_of("type")))?;
    let name = fields.string("name")?;
    let instructions_path = fields.path_of("instructions");
    let instructions = fields
        .take("instructions")
        .ok_or_else(|| FieldError::missing(&instructions_path))?;
    let spelled = spelled.and_then(|question| question.member("instructions"));
    let instructions = read_parts(&instructions_path, instructions, spelled, ignored)?;
    let answers = match kind {
        0 => Answers::YesNo {
            yes: None,
            no: None,
        },
        1 => Answers::Choice(read_choices(&mut fields)?),
        _ => Answers::Score(read_levels(&mut fields)?),
    };
    check_untaken(&fields)?;
    let question = Question {
        path,
        instructions: Some(instructions),
        answers,
        described: None,
    };
    Ok((name, question))
}

fn read_choices(question: &mut Fields) -> Result<Vec<Choice>, FieldError> {
    let path = question.path_of("choices");
    let choices = question.array("choices")?;
    let choices = choices.ok_or_else(|| FieldError::missing(&path))?;
    question::check_count(&path, "choices", choices.len(), &NUM_CHOICES)?;
    let numbered = choices.into_iter().enumerate();
    let choices = numbered.map(|(index, choice)| {
        let mut choice = Fields::new(format!("{path}[{index}]"), choice)?;
        let path = choice.path_of("value");
        let value = match choice.take("value") {
            Some(Value::String(text)) => ChoiceValue::Text(text),
            Some(Value::Bool(flag)) => ChoiceValue::Flag(flag),
            None => return Err(FieldError::missing(path)),
            Some(other) => return Err(wrong_type(&path, "a string or a boolean", &other)),
        };
        let description = choice.string("description")?;
        check_untaken(&choice)?;
        Ok(Choice {
            path,
            value,
            description,
        })
    });
    let choices: Vec<Choice> = choices.collect::<Result<_, _>>()?;
    question::check_distinct(&choices)?;
    Ok(choices)
}

fn read_levels(question: &mut Fields) -> Result<Vec<Level>, FieldError> {
    let path = question.path_of("levels");
    let levels = question.array("levels")?;
    let levels = levels.ok_or_else(|| FieldError::missing(&path))?;
    question::check_count(&path, "levels", levels.len(), &NUM_LEVELS)?;
    let numbered = levels.into_iter().enumerate();
    let levels = numbered.map(|(index, level)| {
        let mut level = Fields::new(format!("{path}[{index}]"), level)?;
        let label = level.string("label")?;
        let label = label.ok_or_else(|| FieldError::missing(level.path_of("label")))?;
        let description = level.string("description")?;
        check_untaken(&level)?;
        Ok(Level { label, description })
    });
    levels.collect()
}

/// The reply.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Decision {
    /// Name of the reply.
    pub id: String,
    /// Always `decision`.
    #[schemars(extend("const" = "decision"))]
    pub object: String,
    /// Seconds since 1970.
    pub created: u64,
    /// The model that answered.
    pub model: String,
    /// In the order of the questions.
    pub answers: Vec<Answer>,
    /// Token counts.
    pub usage: DecisionUsage,
    /// Weights, numerics and version in one short hash.
    pub system_fingerprint: String,
    /// Name and version of the way that questions are put to the model.
    pub prompt_format: String,
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "DecisionAnswer")]
pub struct Answer {
    /// The answer proper.
    #[serde(flatten)]
    pub body: AnswerBody,
    /// The question's name, or null.
    pub name: Option<String>,
    /// Probability that the model says any of the answers at all.
    pub label_mass: f64,
    /// How the labels join the prompt.
    pub boundary: Boundary,
    /// Probabilities before rotations and prior, in the order of the answers; yes comes first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_probabilities: Option<Vec<f64>>,
    /// Where they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diagnostics: Option<Diagnostics>,
}

/// An answer by its type.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
#[schemars(rename = "DecisionAnswerBody")]
pub enum AnswerBody {
    /// Yes or no.
    Predicate {
        /// Of yes.
        probability: f64,
    },
    /// One of several.
    Choice {
        /// The most likely.
        choice: ChoiceValue,
        /// 0 at an even guess, 1 at certainty.
        confidence: f64,
        /// In the order of the choices.
        probabilities: Vec<ChoiceProbability>,
    },
    /// A level.
    Score {
        /// Sum of each level times its probability.
        score: f64,
        /// 0 at an even spread, 1 at certainty.
        confidence: f64,
        /// In the order of the levels.
        probabilities: Vec<LevelProbability>,
    },
    /// The answers' mass is below what was asked for.
    Refusal,
}

/// One option's probability.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ChoiceProbability {
    /// The option.
    pub value: ChoiceValue,
    /// Its probability.
    pub probability: f64,
}

/// One level's probability.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LevelProbability {
    /// Its number.
    pub value: usize,
    /// What it is called.
    pub label: String,
    /// Its probability.
    pub probability: f64,
}

/// Token counts, as in the Responses API.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DecisionUsage {
    /// Tokens of the prompts; what questions share is counted once.
    pub input_tokens: u64,
    /// Where they came from.
    pub input_tokens_details: InputTokensDetails,
    /// Tokens of the labels that were read.
    pub output_tokens: u64,
    /// What they were.
    pub output_tokens_details: OutputTokensDetails,
    /// Sum of both.
    pub total_tokens: u64,
}

/// Where input tokens came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct InputTokensDetails {
    /// Always 0: writing the cache is free.
    pub cache_write_tokens: u64,
    /// Read from the prefix cache.
    pub cached_tokens: u64,
}

/// What output tokens were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OutputTokensDetails {
    /// Always 0: nothing is thought.
    pub reasoning_tokens: u64,
}

impl Answer {
    /// The answer to `question` that `reading` is.
    pub fn new(name: Option<String>, question: &Question, reading: Reading) -> Self {
        let body = match &question.answers {
            _ if reading.is_refused => AnswerBody::Refusal,
            Answers::YesNo { .. } => AnswerBody::Predicate {
                probability: reading.probabilities[0],
            },
            Answers::Choice(choices) => {
                let pairs = choices.iter().zip(&reading.probabilities);
                let probabilities = pairs.map(|(choice, probability)| ChoiceProbability {
                    value: choice.value.clone(),
                    probability: *probability,
                });
                AnswerBody::Choice {
                    choice: choices[reading.mode].value.clone(),
                    confidence: reading.confidence,
                    probabilities: probabilities.collect(),
                }
            }
            Answers::Score(levels) => {
                let pairs = levels.iter().zip(&reading.probabilities).enumerate();
                let probabilities = pairs.map(|(value, (level, probability))| LevelProbability {
                    value,
                    label: level.label.clone(),
                    probability: *probability,
                });
                AnswerBody::Score {
                    score: reading.score,
                    confidence: reading.confidence,
                    probabilities: probabilities.collect(),
                }
            }
        };
        Self {
            body,
            name,
            label_mass: reading.label_mass,
            boundary: reading.boundary,
            raw_probabilities: reading.raw_probabilities,
            diagnostics: reading.diagnostics,
        }
    }
}
