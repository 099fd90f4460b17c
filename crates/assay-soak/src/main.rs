//! `assay-soak`: draws cells of the invariance matrix and runs mixed traffic, in process and over HTTP, until told
//! numbers or minutes are reached. Any failure is printed with what repeats it, and the exit code is 1.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use assay_soak::cells::{CellCounts, CellSampler};
use assay_soak::http::HttpSoak;
use assay_soak::restart::repeat_cell;
use assay_soak::soak::{Counts, EPOCH_REQUESTS, EpochReport, Soak};
use assay_soak::subject::{Subject, models_dir};
use assay_soak::traffic::Traffic;
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

/// Longest prompt of a real model's mixed traffic: its references are the larger part of the work.
const LONGEST_REAL_PROMPT: usize = 300;
/// How many times each different request comes, about.
const REPEATS: u64 = 3;
/// Failures of one kind that are printed.
const MAX_PRINTED: usize = 5;
/// How often a line is written where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(30);

/// Soaks the engine and the server: every reply against the same request alone on a cold engine, bit by bit.
#[derive(Parser, Debug)]
#[command(name = "soak", about)]
struct Args {
    /// Seed of everything that is drawn
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Mixed requests, in process; shared among the models
    #[arg(long, default_value_t = 2_000)]
    requests: u64,
    /// Mixed chat requests over HTTP; shared among the models
    #[arg(long, default_value_t = 400)]
    http: u64,
    /// Cells of the invariance matrix; shared among the models
    #[arg(long, default_value_t = 500)]
    cells: u64,
    /// Minutes after which nothing new is begun
    #[arg(long)]
    minutes: Option<u64>,
    /// Models, by comma: tiny-llama, tiny-gemma3, smollm2, gemma3
    #[arg(long, value_delimiter = ',', default_value = "tiny-llama,tiny-gemma3")]
    models: Vec<String>,
    /// Where the real models' files are
    #[arg(long)]
    models_dir: Option<PathBuf>,
    /// First epoch, or first cell: with counts of 1, what repeats a failure
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Every so many cells, one is run again in a new process; 0: none
    #[arg(long, default_value_t = 100)]
    restart_every: u64,
    /// Prints the counts as one JSON object
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Counts of one model.
#[derive(Default)]
struct ModelCounts {
    cells: CellCounts,
    in_process: Counts,
    http: Counts,
}

/// One run: its limits, its bar, and what failed.
struct Run<'a> {
    args: &'a Args,
    models_dir: PathBuf,
    started: Instant,
    last_line: Instant,
    num_failures: usize,
}

fn run(args: &Args) -> Result<bool> {
    if args.models.is_empty() {
        bail!("--models: name at least one");
    }
    let models_dir = match &args.models_dir {
        Some(dir) => dir.clone(),
        None => models_dir()?,
    };
    let num_models = args.models.len() as u64;
    let mut run = Run {
        args,
        models_dir,
        started: Instant::now(),
        last_line: Instant::now(),
        num_failures: 0,
    };
    let mut all = Vec::new();
    for name in &args.models {
        let subject = Subject::named(name, &run.models_dir)?;
        let mut counts = ModelCounts::default();
        run.cells(&subject, args.cells / num_models, &mut counts.cells)?;
        let num_requests = args.requests / num_models;
        run.in_process(&subject, num_requests, &mut counts.in_process)?;
        run.over_http(&subject, args.http / num_models, &mut counts.http)?;
        all.push((name.clone(), counts));
    }
    let is_clean = all.iter().all(|(_, counts)| {
        counts.cells.num_failed == 0 && counts.in_process.is_clean() && counts.http.is_clean()
    });
    report(args, &all, run.started.elapsed());
    Ok(is_clean && run.num_failures == 0)
}

impl Run<'_> {
    fn cells(
        &mut self,
        subject: &Arc<Subject>,
        num_cells: u64,
        counts: &mut CellCounts,
    ) -> Result<()> {
        let mut sampler = CellSampler::new(subject, self.args.seed)?;
        let bar = bar("cells", subject, num_cells);
        for index in self.args.first..self.args.first + num_cells {
            if self.is_over() {
                break;
            }
            let mut failure = sampler.run(index, counts)?;
            let is_repeated = self.args.restart_every > 0
                && (index - self.args.first).is_multiple_of(self.args.restart_every);
            if failure.is_none() && is_repeated {
                let model = (subject.name.as_str(), self.models_dir.as_path());
                failure = repeat_cell(model, self.args.seed, index, counts)?
                    .map(|differs| format!("cell {index}: {differs}"));
                counts.num_failed += u64::from(failure.is_some());
            }
            let repeat = format!("--cells 1 --requests 0 --http 0 --first {index}");
            self.failed(subject, &repeat, failure);
            bar.inc(1);
            self.line(|| format!("{} cells: {}", subject.name, counts.to_json()));
        }
        bar.finish_and_clear();
        Ok(())
    }

    fn in_process(
        &mut self,
        subject: &Arc<Subject>,
        num_requests: u64,
        counts: &mut Counts,
    ) -> Result<()> {
        let traffic = Traffic::new(
            subject,
            self.args.seed,
            num_requests / REPEATS,
            longest_prompt(subject),
        )?;
        let mut soak = Soak::new(subject, traffic);
        self.epochs(subject, "requests", num_requests, counts, |epoch, num| {
            soak.run(epoch, num)
        })
    }

    fn over_http(
        &mut self,
        subject: &Arc<Subject>,
        num_requests: u64,
        counts: &mut Counts,
    ) -> Result<()> {
        if num_requests == 0 {
            return Ok(());
        }
        let mut soak = HttpSoak::new(subject, self.args.seed, num_requests / REPEATS)?;
        self.epochs(subject, "http", num_requests, counts, |epoch, num| {
            soak.run(epoch, num)
        })
    }

    fn epochs(
        &mut self,
        subject: &Subject,
        what: &str,
        num_requests: u64,
        counts: &mut Counts,
        mut run_epoch: impl FnMut(u64, u64) -> Result<EpochReport>,
    ) -> Result<()> {
        let bar = bar(what, subject, num_requests);
        let mut num_left = num_requests;
        let mut epoch = self.args.first;
        while num_left > 0 && !self.is_over() {
            let num_now = num_left.min(EPOCH_REQUESTS);
            let report = run_epoch(epoch, num_now)?;
            *counts += &report.counts;
            let others = ["cells", "requests", "http"].map(|name| {
                let count = if name == what { num_now } else { 0 };
                format!("--{name} {count}")
            });
            let repeat = format!("{} --first {epoch}", others.join(" "));
            self.failed(subject, &repeat, report.failures);
            num_left -= num_now;
            epoch += 1;
            bar.inc(num_now);
            self.line(|| format!("{} {what}: {}", subject.name, counts.to_json()));
        }
        bar.finish_and_clear();
        Ok(())
    }

    fn is_over(&self) -> bool {
        let minutes = self.args.minutes.map(|minutes| minutes.saturating_mul(60));
        minutes.is_some_and(|seconds| self.started.elapsed().as_secs() >= seconds)
    }

    /// Prints failures with what repeats them.
    fn failed(
        &mut self,
        subject: &Subject,
        repeat: &str,
        failures: impl IntoIterator<Item = String>,
    ) {
        for failure in failures {
            self.num_failures += 1;
            if self.num_failures <= MAX_PRINTED {
                let (seed, name) = (self.args.seed, &subject.name);
                eprintln!(
                    "FAILED {failure}\n  repeat: cargo xtask soak --seed {seed} --models {name} {repeat}"
                );
            }
        }
    }

    /// A line now and then, where no bar is drawn.
    fn line(&mut self, text: impl FnOnce() -> String) {
        if self.last_line.elapsed() >= LINE_EVERY {
            self.last_line = Instant::now();
            eprintln!("{:5} s  {}", self.started.elapsed().as_secs(), text());
        }
    }
}

fn longest_prompt(subject: &Subject) -> usize {
    if subject.is_real() {
        LONGEST_REAL_PROMPT
    } else {
        usize::MAX
    }
}

fn bar(what: &str, subject: &Subject, length: u64) -> ProgressBar {
    let bar = ProgressBar::new(length);
    let style =
        ProgressStyle::with_template("{msg:.bold} {bar:32.cyan} {pos}/{len} {per_sec} {eta}")
            .expect("the template names only known fields");
    bar.set_style(style);
    bar.set_message(format!("{} {what}", subject.name));
    bar
}

#[expect(clippy::print_stdout, reason = "the counts are the point")]
fn report(args: &Args, all: &[(String, ModelCounts)], elapsed: Duration) {
    let models: Vec<Value> = all
        .iter()
        .map(|(name, counts)| {
            json!({
                "model": name,
                "cells": counts.cells.to_json(),
                "in_process": counts.in_process.to_json(),
                "http": counts.http.to_json(),
            })
        })
        .collect();
    if args.json {
        let seconds = elapsed.as_secs();
        println!(
            "{}",
            json!({"seed": args.seed, "seconds": seconds, "models": models})
        );
        return;
    }
    for model in models {
        println!("{}", model["model"].as_str().unwrap_or_default());
        for part in ["cells", "in_process", "http"] {
            println!("  {part}");
            let counts = model[part].as_object();
            let counts = counts.into_iter().flatten();
            for (name, count) in counts.filter(|(_, count)| count.is_u64()) {
                println!("    {:<24} {count}", name.replace('_', " "));
            }
        }
    }
    println!("seed {}, {} s", args.seed, elapsed.as_secs());
}
