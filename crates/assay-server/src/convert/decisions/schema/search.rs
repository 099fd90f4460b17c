//! The most likely instances of a schema by beams: all that were begun and not followed are accounted for.

use std::cmp::Ordering;
use std::sync::Arc;

use assay_api::decisions::decide::{
    DecideRequest, DecidedField, Instance, Summary, ValueProbability,
};
use assay_api::decisions::schema::{FieldKind, Node};

use super::beam::{Answered, AskedField, Beam, Next};
use crate::convert::decisions::plan::{Ask, Outcome};
use crate::convert::decisions::usage::Counts;
use crate::convert::decisions::wording::state_text;
use crate::deciding::Deciding;
use crate::error::ApiError;

/// What was found.
#[derive(Debug)]
pub(crate) struct Found {
    /// The most likely first.
    pub(crate) instances: Vec<Instance>,
    /// Of the most likely one.
    pub(crate) fields: Vec<DecidedField>,
    /// Of instances that were not followed.
    pub(crate) unexplored_mass: f64,
    /// The likeliest field that was refused, and how likely its beam was.
    pub(crate) refused: Option<(String, f64)>,
    pub(crate) counts: Counts,
}

/// Fills in the schema.
///
/// # Errors
/// The model cannot be asked, a label cannot be read, or reading failed.
pub(crate) async fn search(
    deciding: &mut Deciding,
    request: &DecideRequest,
) -> Result<Found, ApiError> {
    let state: Arc<str> = state_text(&request.state).into();
    let mut search = Search::new(&request.schema, request.num_beams);
    let mut counts = Counts::default();
    while !search.open.is_empty() {
        let asks = search.open.iter().map(|(beam, next)| Ask {
            state: Arc::clone(&state),
            earlier: beam.earlier.clone(),
            question: Arc::new(next.question()),
        });
        let asks: Vec<Ask> = asks.collect();
        let (outcomes, round) = deciding
            .read(asks, &request.settings, request.state_field)
            .await?;
        counts.add(round);
        search.take(outcomes);
    }
    Ok(search.found(counts))
}

struct Search<'s> {
    num_beams: usize,
    /// Beams that ask, and what.
    open: Vec<(Beam<'s>, Next<'s>)>,
    whole: Vec<Beam<'s>>,
    unexplored_mass: f64,
    refused: Option<(String, f64)>,
}

/// One answer to what a beam asked.
struct Candidate {
    beam: usize,
    answer: usize,
    probability: f64,
    is_whole: bool,
}

impl<'s> Search<'s> {
    fn new(schema: &'s Node, num_beams: usize) -> Self {
        let mut search = Self {
            num_beams,
            open: Vec::new(),
            whole: Vec::new(),
            unexplored_mass: 0.0,
            refused: None,
        };
        search.push(Beam::new(schema));
        search
    }

    fn push(&mut self, mut beam: Beam<'s>) {
        match beam.next() {
            Some(next) => self.open.push((beam, next)),
            None => self.whole.push(beam),
        }
    }

    /// Follows the likeliest answers to what the open beams asked.
    fn take(&mut self, outcomes: Vec<Outcome>) {
        let open = std::mem::take(&mut self.open);
        let mut answered = Vec::with_capacity(open.len());
        let mut candidates = Vec::new();
        for ((beam, next), outcome) in open.into_iter().zip(outcomes) {
            let asked = Arc::new(AskedField {
                path: next.path(),
                values: next.values(),
                is_number: matches!(next, Next::Field(_, field) if field.kind == FieldKind::Number),
                reading: outcome.reading,
            });
            if asked.reading.is_refused {
                self.unexplored_mass += beam.probability;
                if self
                    .refused
                    .as_ref()
                    .is_none_or(|(_, most)| beam.probability > *most)
                {
                    self.refused = Some((asked.path.clone(), beam.probability));
                }
                continue;
            }
            let index = answered.len();
            let probabilities = asked.reading.probabilities.iter().enumerate();
            candidates.extend(probabilities.map(|(answer, p)| Candidate {
                beam: index,
                answer,
                probability: beam.probability * p,
                is_whole: beam.would_be_whole(&next, answer),
            }));
            answered.push((beam, next, asked, outcome.text, outcome.labels));
        }
        candidates.sort_by(likelier_first);
        let (mut num_open, mut num_whole) = (0, 0);
        for candidate in candidates {
            let (num_kept, loses_mass) = if candidate.is_whole {
                (&mut num_whole, false)
            } else {
                (&mut num_open, true)
            };
            if *num_kept == self.num_beams {
                if loses_mass {
                    self.unexplored_mass += candidate.probability;
                }
                continue;
            }
            *num_kept += 1;
            let Some((beam, next, asked, question, labels)) = answered.get(candidate.beam) else {
                continue;
            };
            let label = labels.get(candidate.answer).map_or("", String::as_str);
            let mut beam = beam.clone();
            beam.answer(next.clone(), asked, question, label, candidate.answer);
            self.push(beam);
        }
        self.whole
            .sort_by(|a, b| b.probability.total_cmp(&a.probability));
        self.whole.truncate(self.num_beams);
    }

    fn found(self, counts: Counts) -> Found {
        let fields = self
            .whole
            .first()
            .map(|beam| beam.fields.iter().map(field).collect());
        let instances = self.whole.into_iter().map(|beam| Instance {
            value: beam.value,
            probability: beam.probability,
        });
        Found {
            instances: instances.collect(),
            fields: fields.unwrap_or_default(),
            unexplored_mass: self.unexplored_mass,
            refused: self.refused,
            counts,
        }
    }
}

/// Equal ones in the order that they were asked.
fn likelier_first(a: &Candidate, b: &Candidate) -> Ordering {
    let by_probability = b.probability.total_cmp(&a.probability);
    by_probability.then_with(|| (a.beam, a.answer).cmp(&(b.beam, b.answer)))
}

fn field(answered: &Answered) -> DecidedField {
    let Answered { asked, answer } = answered;
    let reading = &asked.reading;
    let pairs = asked.values.iter().zip(&reading.probabilities);
    let distribution = pairs.map(|(value, probability)| ValueProbability {
        value: value.clone(),
        probability: *probability,
    });
    let distribution: Vec<ValueProbability> = distribution.collect();
    let own = distribution.get(*answer).cloned();
    DecidedField {
        path: asked.path.clone(),
        value: own
            .as_ref()
            .map_or(serde_json::Value::Null, |own| own.value.clone()),
        probability: own.map_or(0.0, |own| own.probability),
        distribution,
        summary: asked
            .is_number
            .then(|| Summary::new(&asked.values, &reading.probabilities)),
        confidence: reading.confidence,
        label_mass: reading.label_mass,
        boundary: reading.boundary,
        raw_probabilities: reading.raw_probabilities.clone(),
        diagnostics: reading.diagnostics.clone(),
    }
}
