//! The figures of each set in each setting, and their means over the sets.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Result, bail};
use serde::Serialize;

use super::figures::{self, Judged};
use super::readings::{AnswerLine, Line, SpeedLine};
use super::settings::Setting;

/// Name of the rows of means.
const ALL_SETS: &str = "mean";

/// What `assay eval decisions` prints.
#[derive(Debug, Serialize)]
pub(super) struct Table {
    model: String,
    system_fingerprint: String,
    /// By set and setting; last the means over all sets.
    rows: Vec<Row>,
    /// By the set's name: rows without an answer, and why the first has none.
    refused: BTreeMap<String, Refused>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Row {
    set: String,
    setting: Setting,
    num_rows: usize,
    accuracy: f64,
    calibration_error: f64,
    brier: f64,
    /// Among rows with an order to reverse.
    flip_rate: Option<f64>,
    label_mass: f64,
    decisions_per_second: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Refused {
    num_readings: usize,
    first: String,
}

impl Table {
    /// The figures of `lines`, in whatever order they come.
    ///
    /// # Errors
    /// If they hold no answer, or answers of several models.
    pub(super) fn new(lines: &[Line]) -> Result<Self> {
        let mut answers: BTreeMap<(&str, Setting), BTreeMap<usize, &AnswerLine>> = BTreeMap::new();
        let mut speeds = BTreeMap::new();
        let mut refused: BTreeMap<String, Refused> = BTreeMap::new();
        let mut of_model: Option<&AnswerLine> = None;
        for line in lines {
            match line {
                Line::Answer(answer) => {
                    let first = *of_model.get_or_insert(answer);
                    if first.system_fingerprint != answer.system_fingerprint {
                        let (a, b) = (&first.system_fingerprint, &answer.system_fingerprint);
                        bail!(
                            "answers of several models or settings cannot share a table: {a}, {b}"
                        );
                    }
                    let key = (answer.of.set.as_str(), answer.of.setting);
                    answers
                        .entry(key)
                        .or_default()
                        .insert(answer.of.line, answer);
                }
                Line::Refusal(refusal) => {
                    let entry = refused.entry(refusal.of.set.clone());
                    let entry = entry.or_insert_with(|| Refused {
                        num_readings: 0,
                        first: refusal.error.clone(),
                    });
                    entry.num_readings += 1;
                }
                Line::Speed(speed) => {
                    speeds.insert((speed.set.as_str(), speed.setting), speed);
                }
            }
        }
        let Some(of_model) = of_model else {
            bail!("nothing was answered");
        };
        let mut rows: Vec<Row> = answers
            .iter()
            .map(|(key, answers)| Row::new(key.0, key.1, answers.values(), speeds.get(key)))
            .collect();
        rows.extend(means(&rows));
        Ok(Self {
            model: of_model.model.clone(),
            system_fingerprint: of_model.system_fingerprint.clone(),
            rows,
            refused,
        })
    }
}

impl Row {
    fn new<'a>(
        set: &str,
        setting: Setting,
        answers: impl Iterator<Item = &'a &'a AnswerLine>,
        speed: Option<&&SpeedLine>,
    ) -> Self {
        let judged: Vec<Judged> = answers.map(|answer| judged(answer)).collect();
        Self {
            set: set.to_owned(),
            setting,
            num_rows: judged.len(),
            accuracy: figures::accuracy(&judged),
            calibration_error: figures::calibration_error(&judged),
            brier: figures::brier(&judged),
            flip_rate: figures::flip_rate(&judged),
            label_mass: figures::label_mass(&judged),
            decisions_per_second: speed.map(|speed| speed.num_decisions as f64 / speed.seconds),
        }
    }
}

fn judged(answer: &AnswerLine) -> Judged {
    let mode = figures::mode(&answer.probabilities);
    let reversed = answer.reversed.as_ref();
    Judged {
        probabilities: answer.probabilities.clone(),
        truth: answer.truth.clone(),
        label_mass: answer.label_mass,
        is_flipped: reversed.map(|reversed| figures::mode(reversed) != mode),
    }
}

/// Each setting's means over the sets, each set with the same weight; speeds are of one set alone.
fn means(rows: &[Row]) -> Vec<Row> {
    let mut by_setting: BTreeMap<Setting, Vec<&Row>> = BTreeMap::new();
    for row in rows {
        by_setting.entry(row.setting).or_default().push(row);
    }
    let mean_row = |(setting, rows): (Setting, Vec<&Row>)| {
        let mean = |of: fn(&Row) -> f64| figures::mean(rows.iter().map(|row| of(row)));
        let flips: Vec<f64> = rows.iter().filter_map(|row| row.flip_rate).collect();
        let flip_rate = figures::mean(flips.iter().copied());
        Row {
            set: ALL_SETS.to_owned(),
            setting,
            num_rows: rows.iter().map(|row| row.num_rows).sum(),
            accuracy: mean(|row| row.accuracy),
            calibration_error: mean(|row| row.calibration_error),
            brier: mean(|row| row.brier),
            flip_rate: (!flips.is_empty()).then_some(flip_rate),
            label_mass: mean(|row| row.label_mass),
            decisions_per_second: None,
        }
    };
    by_setting.into_iter().map(mean_row).collect()
}

/// Markdown.
impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let (model, fingerprint) = (&self.model, &self.system_fingerprint);
        writeln!(formatter, "{model}, {fingerprint}\n")?;
        writeln!(
            formatter,
            "| set | rows | readout | debias | accuracy | ECE | Brier | flips | label mass | decisions/s |\n\
             |---|---|---|---|---|---|---|---|---|---|"
        )?;
        for row in &self.rows {
            let flips = row.flip_rate.map_or("–".to_owned(), percent);
            let speed = row.decisions_per_second;
            writeln!(
                formatter,
                "| {} | {} | {} | {} | {:.3} | {:.3} | {flips} | {:.3} | {} |",
                row.set,
                row.num_rows,
                row.setting,
                percent(row.accuracy),
                row.calibration_error,
                row.brier,
                row.label_mass,
                speed.map_or("–".to_owned(), |speed| format!("{speed:.1}"))
            )?;
        }
        for (set, refused) in &self.refused {
            let Refused {
                num_readings,
                first,
            } = refused;
            writeln!(
                formatter,
                "\n{set}: {num_readings} readings were refused; the first: {first}"
            )?;
        }
        Ok(())
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::super::readings::{Of, RefusalLine};
    use super::super::settings::{Debias, Readout};
    use super::*;

    const PLAIN: Setting = Setting {
        readout: Readout::Label,
        debias: Debias::None,
        rotations: 1,
    };

    fn of(set: &str, line: usize) -> Of {
        Of {
            set: set.to_owned(),
            setting: PLAIN,
            line,
        }
    }

    fn answer(set: &str, line: usize, yes: f64, reversed: Option<f64>) -> Line {
        Line::Answer(AnswerLine {
            of: of(set, line),
            system_fingerprint: "fp".to_owned(),
            model: "m".to_owned(),
            probabilities: vec![yes, 1.0 - yes],
            truth: vec![1.0, 0.0],
            label_mass: 0.5,
            reversed: reversed.map(|yes| vec![yes, 1.0 - yes]),
        })
    }

    #[test]
    fn a_row_a_setting_and_means_that_weigh_sets_alike() {
        let lines = [
            answer("b", 1, 0.75, None),
            answer("a", 2, 0.75, Some(0.25)),
            answer("a", 1, 0.25, Some(0.25)),
            Line::Refusal(RefusalLine {
                of: of("a", 3),
                error: "too long".to_owned(),
            }),
            Line::Speed(SpeedLine {
                set: "b".to_owned(),
                setting: PLAIN,
                num_decisions: 5,
                seconds: 2.0,
            }),
        ];
        let table = Table::new(&lines).expect("answers");
        let figures: Vec<_> = table
            .rows
            .iter()
            .map(|row| (row.set.as_str(), row.num_rows, row.accuracy, row.flip_rate))
            .collect();
        assert_eq!(
            figures,
            [
                ("a", 2, 0.5, Some(0.5)),
                ("b", 1, 1.0, None),
                ("mean", 3, 0.75, Some(0.5))
            ]
        );
        let shown = table.to_string();
        for line in [
            "| a | 2 | label | none | 50.0 % | 0.500 | 0.625 | 50.0 % | 0.500 | – |",
            "| b | 1 | label | none | 100.0 % | 0.250 | 0.125 | – | 0.500 | 2.5 |",
            "a: 1 readings were refused; the first: too long",
        ] {
            assert!(shown.contains(line), "{line} in {shown}");
        }
    }

    #[test]
    fn models_do_not_mix() {
        assert!(Table::new(&[]).is_err());
        let mut other = answer("a", 2, 0.5, None);
        if let Line::Answer(other) = &mut other {
            other.system_fingerprint = "other".to_owned();
        }
        let error = Table::new(&[answer("a", 1, 0.5, None), other]).expect_err("two models");
        assert!(error.to_string().contains("other"), "{error}");
    }
}
