//! Repeated measurements of one thing: taken on a quiet machine, told by their median.

use anyhow::Result;
use indicatif::ProgressBar;
use serde::Serialize;

use super::BusyMeter;

/// Attempts for each sample wanted, where others compute meanwhile.
const ATTEMPTS: usize = 3;

/// Seconds of each sample, as taken.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Samples {
    pub(super) seconds: Vec<f64>,
    /// Whether others computed while any of them was taken.
    pub(super) disturbed: bool,
}

impl Samples {
    pub(super) fn median(&self) -> f64 {
        median(&self.seconds)
    }
}

/// What something costs on top, as a share.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct PairedCost {
    pub(super) median: f64,
    pub(super) costs: Vec<f64>,
    pub(super) disturbed: bool,
}

/// The middle value, or the mean of the two; NaN of nothing.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted.len().saturating_sub(1) / 2, sorted.len() / 2);
    match (sorted.get(low), sorted.get(high)) {
        (Some(low), Some(high)) => (low + high) / 2.0,
        _ => f64::NAN,
    }
}

/// Takes samples.
pub(super) struct Sampler<'a> {
    repeats: usize,
    /// Keep disturbed samples instead of taking them again.
    force: bool,
    bar: &'a ProgressBar,
}

impl<'a> Sampler<'a> {
    pub(super) fn new(repeats: usize, force: bool, bar: &'a ProgressBar) -> Self {
        Self {
            repeats,
            force,
            bar,
        }
    }

    /// Takes the samples of `measure`, which gives seconds.
    pub(super) fn sample(
        &mut self,
        name: &str,
        measure: impl FnMut() -> Result<f64>,
    ) -> Result<Samples> {
        let (seconds, disturbed) = self.take(name, measure)?;
        Ok(Samples { seconds, disturbed })
    }

    /// What `measure(true)` takes more than `measure(false)`, each pair taken at once so that a drift of the machine
    /// meets both alike.
    pub(super) fn sample_pairs(
        &mut self,
        name: &str,
        mut measure: impl FnMut(bool) -> Result<f64>,
    ) -> Result<PairedCost> {
        let (costs, disturbed) = self.take(name, || {
            let plain = measure(false)?;
            Ok(measure(true)? / plain - 1.0)
        })?;
        Ok(PairedCost {
            median: median(&costs),
            costs,
            disturbed,
        })
    }

    /// Takes values, after one to warm up, and whether they are disturbed. One beside others' work is taken again;
    /// where that does not help, all are kept.
    fn take(
        &mut self,
        name: &str,
        mut measure: impl FnMut() -> Result<f64>,
    ) -> Result<(Vec<f64>, bool)> {
        self.bar.set_message(name.to_owned());
        measure()?;
        let (mut quiet, mut disturbed) = (Vec::new(), Vec::new());
        while quiet.len() < self.repeats && quiet.len() + disturbed.len() < self.most_attempts() {
            let meter = BusyMeter::start();
            let value = measure()?;
            if meter.others().is_some_and(|others| others.is_too_much()) {
                disturbed.push(value);
            } else {
                quiet.push(value);
            }
        }
        self.bar.inc(1);
        let is_disturbed = quiet.len() < self.repeats;
        if is_disturbed {
            quiet.append(&mut disturbed);
        }
        Ok((quiet, is_disturbed))
    }

    fn most_attempts(&self) -> usize {
        if self.force {
            self.repeats
        } else {
            self.repeats * ATTEMPTS
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn the_warm_up_is_no_sample_and_pairs_stay_together() {
        let bar = ProgressBar::hidden();
        let mut sampler = Sampler::new(3, true, &bar);
        let mut next = 0.0;
        let samples = sampler.sample("x", || {
            next += 1.0;
            Ok(next)
        });
        assert_eq!(samples.unwrap().seconds, [2.0, 3.0, 4.0]);
        let mut drift = 1.0;
        let cost = sampler.sample_pairs("x", |with| {
            let seconds = if with { drift * 1.5 } else { drift };
            drift *= if with { 2.0 } else { 1.0 };
            Ok(seconds)
        });
        assert_eq!(cost.unwrap().costs, [0.5, 0.5, 0.5]);
    }
}
