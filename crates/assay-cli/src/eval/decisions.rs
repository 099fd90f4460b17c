//! `assay eval decisions`: every question of every set, read in every setting, beside its known answer.
//!
//! Questions go as requests to `/v1/decisions`, of the server at `--url` or in this process, as `assay decide` sends them:
//! the figures are of what a client gets, to the bit. A question and the same with its options in reverse are one request.
//! Speed is measured first, on questions that nothing of which is computed yet.

use std::io::Write;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Map, Value};

use crate::config::ModelArgs;
use crate::decide::BadRows;
use crate::decision_client::{Answer, Client, ClientArgs};
use crate::interrupt::Interrupt;
use crate::{progress, terminal};

use super::labelled::{self, LabelledRow, LabelledSet};
use super::readings::{AnswerLine, Line, Of, Readings, RefusalLine, SpeedLine};
use super::settings::{Debias, Readout, Setting};
use super::table::Table;

const ROUTE: &str = "/v1/decisions";

/// What to ask, and how.
#[derive(Args, Clone, Debug)]
pub(super) struct DecisionsArgs {
    /// Labelled sets: JSONL files, or folders of them
    #[arg(long, value_name = "DIR|FILE", num_args = 1.., required_unless_present = "readings")]
    data: Vec<PathBuf>,
    /// Ask only N rows of each set, drawn by --seed
    #[arg(long, value_name = "N")]
    limit: Option<NonZeroUsize>,
    /// Which rows --limit draws
    #[arg(long, value_name = "SEED", default_value = "0")]
    seed: u64,
    /// Readouts to compare
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "label,code"
    )]
    readout: Vec<Readout>,
    /// Ways of debiasing to compare
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "none,rotations,prior,both"
    )]
    debias: Vec<Debias>,
    /// Orders of the options where they are rotated
    #[arg(long, value_name = "K", default_value = "4")]
    rotations: NonZeroU32,
    /// Rows of each set and setting answered against the clock; 0 measures no speed
    #[arg(long, value_name = "N", default_value = "32")]
    timed: usize,
    /// Keep what is read in this file, a JSON line an answer
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Go on behind what --out holds already
    #[arg(long, requires = "out")]
    resume: bool,
    /// Ask nothing: print the table of what --out kept, of one run or several
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["data", "out", "url"])]
    readings: Vec<PathBuf>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    client: ClientArgs,
}

pub(super) fn run(model: ModelArgs, args: &DecisionsArgs, interrupt: &Interrupt) -> Result<()> {
    let is_asked = args.readings.is_empty();
    let readings = if is_asked {
        ask(model, args, interrupt)?
    } else {
        Readings::of_files(&args.readings)?
    };
    let table = Table::new(&readings.lines)?;
    let mut out = terminal::stdout();
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&table)?)?;
    } else {
        write!(out, "{table}")?;
    }
    match readings.num_refused() {
        (num_refused @ 1.., num_rows) if is_asked => {
            Err(BadRows::new(num_refused, num_rows).into())
        }
        _ => Ok(()),
    }
}

fn ask(model: ModelArgs, args: &DecisionsArgs, interrupt: &Interrupt) -> Result<Readings> {
    let mut sets = labelled::read_all(&args.data)?;
    if let Some(limit) = args.limit {
        sets.iter_mut()
            .for_each(|set| set.sample(limit.get(), args.seed));
    }
    let settings = Setting::all(&args.readout, &args.debias, args.rotations.get());
    let mut readings = Readings::open(args.out.as_deref(), args.resume, interrupt)?;
    let client = args.client.client(model, ROUTE, None, interrupt)?;
    let asking = Asking {
        client: &client,
        num_requests: args.client.requests,
        // Unlike that of any run before, whose prefixes a server may still hold.
        salt: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_nanos(),
    };
    for set in &sets {
        asking.time(set, &settings, args.timed, &mut readings)?;
        asking.read(set, &settings, &mut readings)?;
    }
    Ok(readings)
}

struct Asking<'a> {
    client: &'a Client,
    num_requests: NonZeroUsize,
    salt: u128,
}

impl Asking<'_> {
    /// Answers `count` rows in each setting against the clock. Other rows for each as far as there are enough: what a
    /// question without its state answers is kept, and would be a present for the next.
    fn time(
        &self,
        set: &LabelledSet,
        settings: &[Setting],
        count: usize,
        readings: &mut Readings,
    ) -> Result<()> {
        let count = count.min(set.rows.len());
        for (index, &setting) in settings.iter().enumerate() {
            if count == 0 || readings.is_timed(&set.name, setting) {
                continue;
            }
            let rows = set.rows.iter().cycle().skip(index * count).take(count);
            let bodies: Vec<String> = rows
                .map(|row| {
                    let salt = format!(",\"cache_salt\":\"eval-{}-{index}\"", self.salt);
                    body(row, &[&row.question.text], &(setting.members() + &salt))
                })
                .collect();
            let bar =
                progress::decisions_bar(&format!("{} against the clock", set.name), count as u64);
            let start = Instant::now();
            let mut num_decisions = 0;
            self.each(&bodies, |_, answer| {
                num_decisions += usize::from(!answer.is_error());
                bar.inc(1);
                Ok(())
            })?;
            let seconds = start.elapsed().as_secs_f64();
            bar.finish_and_clear();
            readings.add(Line::Speed(SpeedLine {
                set: set.name.clone(),
                setting,
                num_decisions,
                seconds,
            }))?;
        }
        Ok(())
    }

    /// Reads what is not read yet. A row's settings follow one another: they share what is computed of its state.
    fn read(&self, set: &LabelledSet, settings: &[Setting], readings: &mut Readings) -> Result<()> {
        let done = readings.done();
        let mut wanted = Vec::new();
        for row in &set.rows {
            for &setting in settings {
                let of = Of {
                    set: set.name.clone(),
                    setting,
                    line: row.line,
                };
                if !done.contains(&of) {
                    wanted.push((row, of));
                }
            }
        }
        let bodies: Vec<String> = wanted
            .iter()
            .map(|(row, of)| {
                let reversed = row.question.reversed.as_deref();
                let questions: Vec<&str> = std::iter::once(row.question.text.as_str())
                    .chain(reversed)
                    .collect();
                body(row, &questions, &of.setting.members())
            })
            .collect();
        let bar = progress::decisions_bar(&set.name, bodies.len() as u64);
        self.each(&bodies, |index, answer| {
            let (row, of) = &wanted[index];
            readings.add(line(row, of.clone(), answer)?)?;
            bar.inc(1);
            Ok(())
        })?;
        bar.finish_and_clear();
        Ok(())
    }

    /// Sends all bodies, several at a time, and takes the answers as they come.
    fn each(
        &self,
        bodies: &[String],
        mut take: impl FnMut(usize, Answer) -> Result<()>,
    ) -> Result<()> {
        let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
        thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            for _ in 0..self.num_requests.get().min(bodies.len()) {
                let (sender, next, is_over) = (sender.clone(), &next, &is_over);
                scope.spawn(move || {
                    while !is_over.load(Ordering::Relaxed) {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(body) = bodies.get(index) else { break };
                        if sender.send((index, self.client.ask(body))).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(sender);
            let taken = receiver
                .into_iter()
                .try_for_each(|(index, answer)| take(index, answer?));
            // Whatever was the matter, nobody waits for the others' answers.
            is_over.store(true, Ordering::Relaxed);
            taken
        })
    }
}

fn body(row: &LabelledRow, questions: &[&str], members: &str) -> String {
    let (input, questions) = (&row.input, questions.join(","));
    format!("{{\"input\":{input},\"questions\":[{questions}]{members}}}")
}

fn line(row: &LabelledRow, of: Of, answer: Answer) -> Result<Line> {
    let reply = match answer {
        Answer::Reply(reply) => reply,
        Answer::Error(error) => {
            let message = error.get("message").and_then(Value::as_str);
            let error = message.map_or_else(|| error.to_string(), str::to_owned);
            return Ok(Line::Refusal(RefusalLine { of, error }));
        }
    };
    let text = |name: &str| -> Result<String> {
        let value = reply.get(name).and_then(Value::as_str);
        Ok(value
            .with_context(|| format!("a reply without `{name}`"))?
            .to_owned())
    };
    let own = answer_at(&reply, 0)?;
    let reversed = row.question.reversed.as_ref().map(|_| {
        let mut reversed = probabilities(answer_at(&reply, 1)?)?;
        reversed.reverse();
        anyhow::Ok(reversed)
    });
    let probabilities = probabilities(own)?;
    if probabilities.len() != row.truth.len() {
        bail!(
            "{} answers to a question with {}",
            probabilities.len(),
            row.truth.len()
        );
    }
    let label_mass = own["label_mass"].as_f64();
    Ok(Line::Answer(AnswerLine {
        of,
        system_fingerprint: text("system_fingerprint")?,
        model: text("model")?,
        truth: row.truth.clone(),
        label_mass: label_mass.context("an answer without `label_mass`")?,
        reversed: reversed.transpose()?,
        probabilities,
    }))
}

fn answer_at(reply: &Map<String, Value>, index: usize) -> Result<&Value> {
    let answer = reply.get("answers").and_then(|answers| answers.get(index));
    answer.with_context(|| format!("a reply without answer {index}"))
}

/// Of each answer, yes before no.
fn probabilities(answer: &Value) -> Result<Vec<f64>> {
    if let Some(yes) = answer["probability"].as_f64() {
        return Ok(vec![yes, 1.0 - yes]);
    }
    let listed = answer["probabilities"].as_array();
    let listed = listed.with_context(|| format!("no probabilities in {answer}"))?;
    let each = listed.iter().map(|one| {
        let probability = one["probability"].as_f64();
        probability.context("an answer without its probability")
    });
    each.collect()
}
