//! What `assay bench` prints: rates, the limit that binds each, and how much of it is reached.

use std::io::Write;

use serde::Serialize;

use super::machine::Machine;
use super::numerics_name;
use super::samples::{PairedCost, Samples};
use super::work::Amount;
use crate::config::ModelConfig;

/// Everything measured.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    machine: Machine,
    model: String,
    numerics: &'static str,
    isa: &'static str,
    /// Whether disturbed figures are given all the same.
    forced: bool,
    pub(super) runs: Vec<Run>,
}

/// The figures of one number of threads.
#[derive(Debug, Serialize)]
pub(super) struct Run {
    threads: usize,
    #[serde(skip)]
    forced: bool,
    ceilings: Ceilings,
    figures: Vec<FigureReport>,
    /// What 20 alternatives with each token cost, as a share of the time without any scores.
    pub(super) top20_cost: Option<PairedCost>,
}

/// The machine's limits in the same minutes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Ceilings {
    /// Which instruction the peak is of.
    integer_instruction: Option<&'static str>,
    integer_ops_per_second: Option<f64>,
    /// Of a buffer that no cache holds.
    read_bytes_per_second: Option<f64>,
    /// Of a buffer as large as the weights, again and again as decoding reads them: where a cache holds it,
    /// this is what binds.
    weights_read_bytes_per_second: Option<f64>,
    disturbed: bool,
}

/// One rate.
#[derive(Debug, Serialize)]
struct FigureReport {
    name: String,
    /// `null` where others computed meanwhile and nobody forced it.
    tokens_per_second: Option<f64>,
    /// The limit that it comes nearest to.
    bound: Option<Bound>,
    /// How much of the limit is reached, 0..1.
    share: Option<f64>,
    samples: Samples,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Bound {
    IntegerPeak,
    WeightsRead,
}

impl Ceilings {
    /// From the seconds of one operation and of one byte.
    pub(super) fn new(
        instruction: Option<&'static str>,
        integer: &Samples,
        read: &Samples,
        weights_read: &Samples,
    ) -> Self {
        Self {
            integer_instruction: instruction,
            integer_ops_per_second: instruction.map(|_| 1.0 / integer.median()),
            read_bytes_per_second: Some(1.0 / read.median()),
            weights_read_bytes_per_second: Some(1.0 / weights_read.median()),
            disturbed: integer.disturbed || read.disturbed || weights_read.disturbed,
        }
    }

    /// The limit that `amount` in `seconds` comes nearest to.
    fn nearest(&self, amount: Amount, seconds: f64) -> Option<(Bound, f64)> {
        let share = |amount: f64, ceiling: Option<f64>| {
            let ceiling = ceiling.filter(|_| amount > 0.0)?;
            Some(amount / seconds / ceiling)
        };
        let integer = share(amount.integer_ops, self.integer_ops_per_second);
        let read = share(amount.read_bytes, self.weights_read_bytes_per_second);
        [(Bound::IntegerPeak, integer), (Bound::WeightsRead, read)]
            .into_iter()
            .filter_map(|(bound, share)| Some((bound, share?)))
            .max_by(|(_, a), (_, b)| a.total_cmp(b))
    }
}

impl Run {
    pub(super) fn new(threads: usize, forced: bool, ceilings: Ceilings) -> Self {
        Self {
            threads,
            forced,
            ceilings,
            figures: Vec::new(),
            top20_cost: None,
        }
    }

    /// Adds a figure whose samples each took `num_tokens` and did `amount`.
    pub(super) fn push(&mut self, name: &str, num_tokens: usize, samples: Samples, amount: Amount) {
        let seconds = samples.median();
        let is_quoted = self.forced || !samples.disturbed;
        let nearest = self
            .ceilings
            .nearest(amount, seconds)
            .filter(|_| is_quoted && (self.forced || !self.ceilings.disturbed));
        self.figures.push(FigureReport {
            name: name.to_owned(),
            tokens_per_second: is_quoted.then(|| num_tokens as f64 / seconds),
            bound: nearest.map(|(bound, _)| bound),
            share: nearest.map(|(_, share)| share),
            samples,
        });
    }

    fn num_disturbed(&self) -> usize {
        let figures = self.figures.iter().map(|figure| figure.samples.disturbed);
        figures
            .chain([self.ceilings.disturbed])
            .chain(self.top20_cost.iter().map(|cost| cost.disturbed))
            .filter(|disturbed| *disturbed)
            .count()
    }
}

impl Report {
    pub(super) fn new(machine: Machine, config: &ModelConfig, forced: bool) -> Self {
        Self {
            forced,
            machine,
            model: config.model.clone(),
            numerics: numerics_name(config.numerics),
            isa: config.isa.name(),
            runs: Vec::new(),
        }
    }

    /// Figures that others' work disturbed.
    pub(super) fn num_not_quoted(&self) -> usize {
        self.runs.iter().map(Run::num_disturbed).sum()
    }

    /// For people.
    ///
    /// # Errors
    /// The writer's.
    pub(super) fn write_text(&self, out: &mut impl Write) -> std::io::Result<()> {
        writeln!(
            out,
            "{}, {}, {}; {}, {} cores",
            self.model, self.numerics, self.isa, self.machine.cpu, self.machine.cores
        )?;
        for run in &self.runs {
            writeln!(out, "\n{} thread(s)", run.threads)?;
            run.write_text(out)?;
        }
        if self.num_not_quoted() > 0 {
            writeln!(out, "\n* others computed meanwhile: not a figure to quote")?;
        }
        Ok(())
    }
}

impl Run {
    fn write_text(&self, out: &mut impl Write) -> std::io::Result<()> {
        let mark = |disturbed: bool| if disturbed { "*" } else { "" };
        let rate = |value: f64, disturbed: bool| {
            if disturbed && !self.forced {
                "busy".to_owned()
            } else {
                format!("{value:.1}")
            }
        };
        let Ceilings { disturbed, .. } = self.ceilings;
        if let (Some(instruction), Some(ops)) = (
            self.ceilings.integer_instruction,
            self.ceilings.integer_ops_per_second,
        ) {
            let (name, ops) = ("integer peak", rate(ops / 1e9, disturbed));
            writeln!(
                out,
                "  {name:<18} {ops:>8} GOP/s{}   {instruction}",
                mark(disturbed)
            )?;
        }
        for (name, bytes) in [
            ("memory read", self.ceilings.read_bytes_per_second),
            ("weights read", self.ceilings.weights_read_bytes_per_second),
        ] {
            if let Some(bytes) = bytes {
                let bytes = rate(bytes / 1e9, disturbed);
                writeln!(out, "  {name:<18} {bytes:>8} GB/s{}", mark(disturbed))?;
            }
        }
        for figure in &self.figures {
            let mark = mark(figure.samples.disturbed);
            match figure.tokens_per_second {
                Some(rate) => write!(out, "  {:<18} {rate:>8.0} tokens/s{mark}", figure.name)?,
                None => write!(out, "  {:<18} {:>8}{mark}", figure.name, "busy")?,
            }
            if let (Some(bound), Some(share)) = (figure.bound, figure.share) {
                let bound = match bound {
                    Bound::IntegerPeak => "integer peak",
                    Bound::WeightsRead => "weights read",
                };
                write!(out, "   {:>3.0} % of {bound}", share * 100.0)?;
            }
            writeln!(out)?;
        }
        if let Some(cost) = &self.top20_cost {
            let percent = rate(cost.median * 100.0, cost.disturbed);
            writeln!(
                out,
                "  {:<18} {percent:>8} %{} more time than without scores",
                "top-20 logprobs",
                mark(cost.disturbed)
            )?;
        }
        Ok(())
    }
}
