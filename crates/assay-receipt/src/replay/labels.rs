//! Labels read again, and the distributions that their readings come to.

use std::collections::BTreeMap;

use assay_engine::decision::{
    DecideError, DecisionRequest, LabelQuestion, LabelReading, debias, distribution,
};

use super::sink::channel;
use super::{Replay, ReplayError, check_bits, different, impossible, not_taken};
use crate::record::{Distribution, Label, Output};

/// Edges of the labels that are read together at most. What a file's size allows is less.
const MAX_TRIE_EDGES: usize = 1 << 24;

/// What was read again.
pub(super) struct Readings {
    /// By output.
    joints: BTreeMap<usize, Vec<f64>>,
    pub(super) num_values: usize,
}

impl Replay<'_> {
    /// Reads all labels, those together whose prompts begin alike, and compares them.
    pub(super) fn read_labels(self) -> Result<Readings, ReplayError> {
        let mut readings = Readings {
            joints: BTreeMap::new(),
            num_values: 0,
        };
        let mut groups: BTreeMap<Option<u32>, Vec<(usize, LabelQuestion)>> = BTreeMap::new();
        for (index, output) in self.receipt.outputs.iter().enumerate() {
            let Output::Labels {
                healed_bytes,
                labels,
                ..
            } = output
            else {
                continue;
            };
            let question = LabelQuestion {
                prompt_token_ids: self.prompt(output),
                labels: labels.iter().map(|label| label.token_ids.clone()).collect(),
                end_token_ids: self.receipt.end_token_ids.clone(),
                healed_bytes: healed_bytes.0.clone(),
            };
            let first = question.prompt_token_ids.first().copied();
            groups.entry(first).or_default().push((index, question));
        }
        for group in groups.into_values() {
            let (indices, questions): (Vec<usize>, Vec<LabelQuestion>) = group.into_iter().unzip();
            for (index, reading) in indices.iter().zip(self.read_group(&indices, questions)?) {
                let num_values = self.check_labels(*index, &reading)?;
                readings.num_values += num_values;
                readings.joints.insert(*index, reading.joint_logprobs());
            }
        }
        Ok(readings)
    }

    fn read_group(
        self,
        indices: &[usize],
        questions: Vec<LabelQuestion>,
    ) -> Result<Vec<LabelReading>, ReplayError> {
        let (sink, heard) = channel();
        let request = DecisionRequest {
            questions,
            cache_salt: None,
            max_trie_edges: MAX_TRIE_EDGES,
        };
        match self.engine.decide(request, Box::new(sink)) {
            Ok(()) => {}
            Err(DecideError::Invalid(error)) => {
                let place = format!("outputs {indices:?}");
                return Err(impossible(place, error.to_string()));
            }
            Err(DecideError::Submit(error)) => return Err(not_taken("outputs", error)),
        }
        Ok(heard.next()??.questions)
    }

    /// How many values of an output are the same, which all must be.
    fn check_labels(self, index: usize, read: &LabelReading) -> Result<usize, ReplayError> {
        let Some(Output::Labels {
            labels,
            healed_logprob_bits,
            label_mass_bits,
            leaving_mass_bits,
            ..
        }) = self.receipt.outputs.get(index)
        else {
            return Err(impossible(format!("outputs[{index}]"), "no labels"));
        };
        let place = format!("outputs[{index}]");
        let mut num_values = 0;
        for (at, (label, score)) in labels.iter().zip(&read.labels).enumerate() {
            let place = format!("{place}.labels[{at}]");
            let values: Vec<f64> = score.steps.iter().copied().chain([score.end]).collect();
            check_count(&place, label, values.len())?;
            for (step, (bits, value)) in label.logprob_bits.iter().zip(&values).enumerate() {
                check_bits(|| format!("{place}.logprob_bits[{step}]"), *bits, *value)?;
            }
            check_bits(
                || format!("{place}.joint_bits"),
                label.joint_bits,
                score.joint,
            )?;
            num_values += values.len();
        }
        match (healed_logprob_bits, read.healed_logprob) {
            (None, None) => {}
            (Some(bits), Some(value)) => {
                check_bits(|| format!("{place}.healed_logprob_bits"), *bits, value)?;
            }
            (recorded, found) => {
                return Err(different(
                    format!("{place}.healed_logprob_bits"),
                    recorded.map_or("null".to_owned(), |bits| bits.to_string()),
                    found.map_or("null".to_owned(), |value| value.to_string()),
                ));
            }
        }
        check_bits(
            || format!("{place}.label_mass_bits"),
            *label_mass_bits,
            read.label_mass,
        )?;
        check_bits(
            || format!("{place}.leaving_mass_bits"),
            *leaving_mass_bits,
            read.leaving_mass,
        )?;
        Ok(num_values)
    }

    /// Makes the distributions again of what was read.
    pub(super) fn check_distributions(self, readings: &Readings) -> Result<(), ReplayError> {
        for (index, recorded) in self.receipt.distribution_bits.iter().enumerate() {
            let place = format!("distribution_bits[{index}]");
            let found = readings.distribution(&place, recorded)?;
            if found.len() != recorded.probability_bits.len() {
                return Err(different(
                    format!("{place}.probability_bits"),
                    format!("{} values", recorded.probability_bits.len()),
                    format!("{} labels", found.len()),
                ));
            }
            for (at, (bits, value)) in recorded.probability_bits.iter().zip(found).enumerate() {
                check_bits(|| format!("{place}.probability_bits[{at}]"), *bits, value)?;
            }
        }
        Ok(())
    }
}

fn check_count(place: &str, label: &Label, found: usize) -> Result<(), ReplayError> {
    if label.logprob_bits.len() == found {
        return Ok(());
    }
    let reason = "a value for each of its tokens and one for its end";
    Err(impossible(format!("{place}.logprob_bits"), reason))
}

impl Readings {
    fn joints(&self, place: &str, output: usize) -> Result<&[f64], ReplayError> {
        let found = self.joints.get(&output);
        found
            .map(Vec::as_slice)
            .ok_or_else(|| impossible(place, format!("outputs[{output}] has no labels")))
    }

    fn distribution(&self, place: &str, of: &Distribution) -> Result<Vec<f64>, ReplayError> {
        let mut orders: Vec<Vec<f64>> = Vec::with_capacity(of.readings.len());
        for reading in &of.readings {
            let mut joints = self.joints(place, reading.output)?.to_vec();
            if let Some(prior) = reading.prior {
                let prior = self.joints(place, prior)?;
                if prior.len() != joints.len() {
                    return Err(impossible(place, "a prior of other labels"));
                }
                std::iter::zip(&mut joints, prior).for_each(|(joint, prior)| *joint -= prior);
            }
            if orders
                .first()
                .is_some_and(|first| first.len() != joints.len())
            {
                return Err(impossible(place, "readings of other labels"));
            }
            orders.push(joints);
        }
        match (&orders[..], &of.readings[..]) {
            ([], _) => Err(impossible(place, "made of no reading")),
            ([joints], [reading]) if reading.prior.is_none() => {
                Ok(distribution::probabilities(joints))
            }
            _ => Ok(debias::geometric_mean(&orders)),
        }
    }
}
