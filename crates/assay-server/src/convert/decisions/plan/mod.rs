//! Questions to requests of the engine, and its readings to a distribution a question.
//!
//! A question becomes one label question for each order of its options, and one more for each without the state where
//! a prior is asked for and not known yet.

mod builder;
mod recorded;

use std::sync::Arc;

use assay_api::FieldError;
use assay_api::decisions::{
    Answers, Boundary, DecisionSettings, Diagnostics, LabelPath, Prior, Question, Reading, Readout,
};
use assay_engine::decision::{
    DecisionReading, DecisionRequest, InvalidDecision, LabelError, LabelFault, LabelQuestion,
    LabelReading, code_labels, debias, distribution, tokenize_labels,
};

use super::prior_cache::PriorCache;
use super::prompt::{Asked, QuestionFormat};
use super::wording::{self, Listed, YES_NO};
use crate::convert::request::ModelLimits;
use crate::error::{ApiError, TokenCount};
use crate::model_text::ModelText;
use builder::Builder;

/// A question in its place.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    /// Text of what it is about.
    pub(crate) state: Arc<str>,
    /// Questions before it, as they were put, with their answers.
    pub(crate) earlier: Vec<(String, String)>,
    /// What is asked.
    pub(crate) question: Arc<Question>,
}

impl Ask {
    /// `question` about `state`, with nothing before it.
    pub(crate) fn of(state: &Arc<str>, question: &Question) -> Self {
        Self {
            state: Arc::clone(state),
            earlier: Vec::new(),
            question: Arc::new(question.clone()),
        }
    }
}

/// How the readings of one request become distributions.
#[derive(Debug)]
pub(crate) struct Plan {
    asks: Vec<Planned>,
    /// Of each label question: the ask that it is of.
    owners: Vec<usize>,
    /// Of each request: its label questions.
    groups: Vec<Vec<usize>>,
    settings: DecisionSettings,
    /// What requests call the state.
    state_field: &'static str,
    limits: ModelLimits,
}

#[derive(Debug)]
struct Planned {
    question: Arc<Question>,
    /// The question as it is put, options in the caller's order.
    text: String,
    /// What is answered, in the caller's order.
    labels: Vec<String>,
    /// Their tokens, where they are reported.
    label_token_ids: Vec<Vec<u32>>,
    /// One for each order of the options; the caller's own first.
    orders: Vec<Order>,
}

#[derive(Debug)]
struct Order {
    /// Index of its label question.
    index: usize,
    prior: Option<PriorOf>,
}

#[derive(Debug)]
enum PriorOf {
    Known(Vec<f64>),
    /// Index of its label question, which is also its key in the cache.
    Read(usize, Box<LabelQuestion>),
}

/// What was read for one ask.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The question as it was put, for those that come after it.
    pub(crate) text: String,
    /// What was answered, in the caller's order.
    pub(crate) labels: Vec<String>,
    /// The distribution.
    pub(crate) reading: Reading,
}

impl Plan {
    /// Puts the questions into words and tokens; a prior that `priors` knows is not read again.
    ///
    /// # Errors
    /// The model cannot be asked, or a label cannot be read; errors name the place in the body.
    pub(crate) fn new(
        asks: &[Ask],
        settings: &DecisionSettings,
        state_field: &'static str,
        text: &ModelText,
        priors: Option<&PriorCache>,
        limits: ModelLimits,
    ) -> Result<(Self, Vec<DecisionRequest>), ApiError> {
        let format = text.question_format()?;
        let mut builder = Builder {
            text,
            format,
            settings,
            priors,
            questions: Vec::new(),
            owners: Vec::new(),
        };
        let mut planned = Vec::with_capacity(asks.len());
        for (owner, ask) in asks.iter().enumerate() {
            if ask.earlier.is_empty() {
                text.check_far_too_long(state_field, ask.state.len(), limits.room)?;
            }
            planned.push(builder.plan(owner, ask)?);
        }
        let groups = groups(&builder.questions);
        let mut questions: Vec<Option<LabelQuestion>> =
            builder.questions.into_iter().map(Some).collect();
        let requests = groups.iter().map(|group| {
            let own = group
                .iter()
                .filter_map(|index| questions.get_mut(*index)?.take());
            DecisionRequest {
                questions: own.collect(),
                cache_salt: settings.cache_salt.as_deref().map(Into::into),
                max_trie_edges: limits.max_trie_edges,
            }
        });
        let requests = requests.collect();
        let plan = Self {
            asks: planned,
            owners: builder.owners,
            groups,
            settings: settings.clone(),
            state_field,
            limits,
        };
        Ok((plan, requests))
    }

    /// The engine's refusal of one of this plan's requests, with the place in the body.
    pub(crate) fn refusal(&self, request: usize, error: &InvalidDecision) -> ApiError {
        let question = |index: usize| {
            let index = self.groups.get(request)?.get(index)?;
            let planned = self.asks.get(*self.owners.get(*index)?)?;
            Some(&*planned.question)
        };
        match *error {
            InvalidDecision::Label {
                question: index,
                label,
                ref fault,
            } => match question(index) {
                Some(question) => label_fault(question, label, fault),
                None => ApiError::Internal(error.to_string()),
            },
            InvalidDecision::TooLong { num_tokens, .. } => ApiError::PromptTooLong {
                field: self.state_field.to_owned(),
                prompt_tokens: TokenCount::Exactly(num_tokens),
                room: self.limits.room,
            },
            InvalidDecision::TooManyEdges { .. } => {
                FieldError::new("questions", format!("`questions`: {error}")).into()
            }
            InvalidDecision::NoQuestions
            | InvalidDecision::EmptyPrompt { .. }
            | InvalidDecision::NothingShared { .. }
            | InvalidDecision::UnknownToken { .. }
            | InvalidDecision::NoLabels { .. } => ApiError::Internal(error.to_string()),
        }
    }

    /// The distributions, in the order of the questions; `read` is by request.
    ///
    /// # Errors
    /// The readings do not belong to this plan.
    pub(crate) fn outcomes(
        self,
        read: Vec<DecisionReading>,
        priors: &PriorCache,
        text: &ModelText,
    ) -> Result<Vec<Outcome>, ApiError> {
        let mut by_question: Vec<Option<LabelReading>> = vec![None; self.owners.len()];
        for (group, read) in self.groups.iter().zip(read) {
            for (index, reading) in group.iter().zip(read.questions) {
                if let Some(place) = by_question.get_mut(*index) {
                    *place = Some(reading);
                }
            }
        }
        let read = Readings(by_question);
        let settings = self.settings;
        let asks = self.asks.into_iter();
        asks.map(|planned| planned.outcome(&read, &settings, priors, text))
            .collect()
    }
}

/// By label question.
struct Readings(Vec<Option<LabelReading>>);

impl Readings {
    fn get(&self, index: usize) -> Result<&LabelReading, ApiError> {
        let reading = self.0.get(index).and_then(Option::as_ref);
        reading.ok_or_else(|| ApiError::Internal(format!("no reading {index}")))
    }
}

/// Questions that go into one request, by their indices: the engine wants their prompts to begin alike. All do, but
/// for those without the state where nothing stands before it.
fn groups(questions: &[LabelQuestion]) -> Vec<Vec<usize>> {
    let mut groups: Vec<(Option<u32>, Vec<usize>)> = Vec::new();
    for (index, question) in questions.iter().enumerate() {
        let first = question.prompt_token_ids.first().copied();
        match groups.iter_mut().find(|(begin, _)| *begin == first) {
            Some((_, group)) => group.push(index),
            None => groups.push((first, vec![index])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

impl Planned {
    fn outcome(
        self,
        read: &Readings,
        settings: &DecisionSettings,
        priors: &PriorCache,
        text: &ModelText,
    ) -> Result<Outcome, ApiError> {
        let Some(first) = self.orders.first() else {
            return Err(ApiError::Internal("a question without an order".to_owned()));
        };
        let own = read.get(first.index)?;
        let raw = distribution::probabilities(&own.joint_logprobs());
        let is_debiased = self.orders.len() > 1 || settings.prior.is_some();
        let probabilities = if is_debiased {
            let mut orders = Vec::with_capacity(self.orders.len());
            for order in &self.orders {
                let mut logprobs = read.get(order.index)?.joint_logprobs();
                if let Some(prior) = &order.prior {
                    let prior = prior.logprobs(read, priors)?;
                    let pairs = logprobs.iter_mut().zip(prior);
                    pairs.for_each(|(logprob, prior)| *logprob -= prior);
                }
                orders.push(logprobs);
            }
            debias::geometric_mean(&orders)
        } else {
            raw.clone()
        };
        let is_finite = probabilities.iter().chain(&raw).all(|p| p.is_finite());
        let too_little = settings
            .min_label_mass
            .is_some_and(|least| own.label_mass < least);
        let confidence = match self.question.answers {
            Answers::Score(_) => distribution::score_confidence(&probabilities),
            _ => distribution::choice_confidence(&probabilities),
        };
        let reading = Reading {
            mode: distribution::mode(&probabilities).unwrap_or(0),
            score: distribution::score(&probabilities),
            confidence,
            raw_probabilities: is_debiased.then_some(raw),
            label_mass: own.label_mass,
            is_refused: !is_finite || too_little,
            boundary: match own.healed_logprob {
                None => Boundary::Exact,
                Some(_) => Boundary::Healed,
            },
            diagnostics: settings.diagnostics.then(|| self.diagnostics(own, text)),
            probabilities,
        };
        Ok(Outcome {
            text: self.text,
            labels: self.labels,
            reading,
        })
    }

    fn diagnostics(&self, read: &LabelReading, text: &ModelText) -> Diagnostics {
        let paths = self.labels.iter().zip(&self.label_token_ids);
        let labels = paths
            .zip(&read.labels)
            .map(|((label, token_ids), score)| LabelPath {
                label: label.clone(),
                token_ids: token_ids.clone(),
                tokens: token_ids.iter().map(|id| text.spell(*id).0).collect(),
                logprobs: score.steps.iter().copied().chain([score.end]).collect(),
                logprob: score.joint,
            });
        Diagnostics {
            labels: labels.collect(),
            label_mass: read.label_mass,
            argmax_is_label: read.argmax_is_label,
            prompt_tokens: read.prompt_tokens,
            cached_tokens: read.cached_tokens,
            trie_edges: read.trie_edges,
        }
    }
}

impl PriorOf {
    fn logprobs(&self, read: &Readings, priors: &PriorCache) -> Result<Vec<f64>, ApiError> {
        match self {
            Self::Known(logprobs) => Ok(logprobs.clone()),
            Self::Read(index, question) => {
                let logprobs = read.get(*index)?.joint_logprobs();
                priors.put(question, &logprobs);
                Ok(logprobs)
            }
        }
    }
}

/// Where an answer of `question` stands in the body.
fn answer_path(question: &Question, index: usize) -> &str {
    match &question.answers {
        Answers::Choice(choices) => choices
            .get(index)
            .map_or(&question.path, |choice| &choice.path),
        _ => &question.path,
    }
}

fn label_error(question: &Question, error: LabelError) -> ApiError {
    let refusal = |index: usize, why: String| {
        let path = answer_path(question, index);
        ApiError::from(FieldError::new(path, format!("`{path}`: {why}")))
    };
    match error {
        LabelError::Empty(index) => refusal(index, LabelFault::Empty.to_string()),
        LabelError::Duplicate(first, second) => {
            let first = answer_path(question, first);
            refusal(
                second,
                format!("reads like `{first}` to this model; options must differ"),
            )
        }
        LabelError::NoEnd => ApiError::NotAskable(error.to_string()),
        LabelError::EmptyPrompt => ApiError::Template(
            "the model's chat template renders the question to nothing".to_owned(),
        ),
        LabelError::Tokenizer(error) => ApiError::Internal(error.to_string()),
    }
}

fn label_fault(question: &Question, label: usize, fault: &LabelFault) -> ApiError {
    let path = answer_path(question, label);
    let message = match fault {
        LabelFault::SameAs(first) => {
            format!(
                "`{path}`: reads like `{}` to this model; options must differ",
                answer_path(question, *first)
            )
        }
        LabelFault::TooManyTokens { .. } => {
            format!("`{path}`: {fault}; use shorter words, or `readout: \"code\"`")
        }
        other => format!("`{path}`: {other}"),
    };
    FieldError::new(path, message).into()
}
