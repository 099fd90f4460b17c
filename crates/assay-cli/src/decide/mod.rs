//! `assay decide`: the same questions about every row of a file, answered in order.
//!
//! Rows go as requests to the decision routes, of the server at `--url` or in this process. So a row's answer is the
//! route's, to the bit. A row that is refused becomes an error line and the run goes on.

mod answers;
pub(crate) mod questions;
mod rows;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use anyhow::{Context, Result};
use clap::Args;

use crate::config::ModelArgs;
use crate::decision_client::{Answer, Client, ClientArgs};
use crate::interrupt::Interrupt;
use crate::progress;

use answers::Answers;
use questions::Questions;
use rows::{Format, Row};

/// What to ask of which rows.
#[derive(Args, Clone, Debug)]
pub(crate) struct DecideArgs {
    /// JSON file: the body of a decision request without its state, or only its questions
    #[arg(long, value_name = "FILE")]
    questions: PathBuf,
    /// Rows: a JSONL or CSV file, `-` for standard input
    #[arg(value_name = "ROWS")]
    rows: PathBuf,
    /// The rows are CSV, whatever the file is called
    #[arg(long)]
    csv: bool,
    /// Member or column that is the state; without it a row is, whole
    #[arg(long, value_name = "NAME")]
    field: Option<String>,
    /// Write answers here instead of to standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Go on behind the answers that --out holds already
    #[arg(long, requires = "out")]
    resume: bool,
    /// SQLite file that gets a receipt for each answer, before it is written here; see `assay ledger`
    #[arg(long, value_name = "FILE", conflicts_with = "url")]
    ledger: Option<PathBuf>,
    #[command(flatten)]
    client: ClientArgs,
}

/// Some rows have an error line instead of an answer.
#[derive(Debug, thiserror::Error)]
#[error("{num_bad} of {num_rows} rows have no answer; their lines say why")]
pub(crate) struct BadRows {
    num_bad: usize,
    num_rows: usize,
}

impl BadRows {
    pub(crate) fn new(num_bad: usize, num_rows: usize) -> Self {
        Self { num_bad, num_rows }
    }
}

/// Answers the questions for every row.
///
/// # Errors
/// If a file cannot be read or written, the server is not to be reached, or, once all are through, rows were bad
/// ([`BadRows`]).
pub(crate) fn run(model: ModelArgs, args: &DecideArgs, interrupt: &Interrupt) -> Result<()> {
    let questions = Questions::read(&args.questions)?;
    let format = Format::of(&args.rows, args.csv);
    let rows = rows::read(&args.rows, format, args.field.as_deref())?;
    let mut answers = Answers::open(args.out.as_deref(), args.resume, interrupt)?;
    let rows = rows.get(answers.num_done()..).with_context(|| {
        format!(
            "--resume: there are {} answers and fewer rows",
            answers.num_done()
        )
    })?;
    let client = args
        .client
        .client(model, questions.route(), args.ledger.as_deref(), interrupt)?;
    let num_bad = ask_all(
        &client,
        &questions,
        rows,
        args.client.requests,
        &mut answers,
    )?;
    let num_rows = rows.len();
    match num_bad {
        0 => Ok(()),
        num_bad => Err(BadRows::new(num_bad, num_rows).into()),
    }
}

/// Asks about several rows at a time and writes the answers in order; how many rows were bad.
fn ask_all(
    client: &Client,
    questions: &Questions,
    rows: &[Row],
    num_requests: NonZeroUsize,
    answers: &mut Answers,
) -> Result<usize> {
    let bar = progress::rows_bar(rows.len() as u64);
    let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for _ in 0..num_requests.get().min(rows.len()) {
            let (sender, next, is_over) = (sender.clone(), &next, &is_over);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(row) = rows.get(index) else { break };
                    let answer = match &row.state {
                        Ok(state) => client.ask(&questions.body(state)),
                        Err(fault) => Ok(Answer::bad_row(fault)),
                    };
                    if sender.send((index, answer)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let written = write_in_order(&receiver, rows, answers, || bar.inc(1));
        // Whatever was the matter, nobody waits for the others' answers.
        is_over.store(true, Ordering::Relaxed);
        written
    })
}

fn write_in_order(
    receiver: &mpsc::Receiver<(usize, Result<Answer>)>,
    rows: &[Row],
    answers: &mut Answers,
    mut written: impl FnMut(),
) -> Result<usize> {
    let mut early = BTreeMap::new();
    let mut num_bad = 0;
    for (index, row) in rows.iter().enumerate() {
        let answer = loop {
            if let Some(answer) = early.remove(&index) {
                break answer;
            }
            let (index, answer) = receiver.recv().context("a worker ended early")?;
            early.insert(index, answer);
        };
        let answer: Answer = answer?;
        num_bad += usize::from(answer.is_error());
        answers.write(row.number, &answer)?;
        written();
    }
    Ok(num_bad)
}
