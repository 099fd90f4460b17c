//! The `assay` binary: each subcommand is one module; settings come from `config/` alone.
#![forbid(unsafe_code)]

mod bench;
mod catalog;
mod channel;
mod chat;
mod config;
mod decide;
mod decision_client;
mod demo;
mod digest;
mod draft_model;
mod eval;
mod inspect;
mod installed;
mod ledger;
mod load;
mod progress;
mod pull;
mod replay;
mod score;
mod serve;
mod table;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};

use crate::config::{LogFormat, ModelArgs, ServeArgs, StoreArgs};

/// Answers from open language models, with exact and repeatable probabilities.
#[derive(Parser)]
#[command(
    name = "assay",
    version,
    about = "Answers from open language models, with exact and repeatable probabilities",
    after_help = "Exit status: 0 done; 1 failed; 2 wrong usage; 3 `bench` found the machine busy; 4 `decide` has rows without an \
                  answer. Of `replay` and `ledger replay`: 0 identical; 1 not identical; 5 not replayed, so nothing is \
                  said of the receipt."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Fetch the default model, serve it, ask one question, print the answer with its probabilities
    Demo {
        #[command(flatten)]
        serve: ServeArgs,
        /// Exit after printing instead of leaving the server up
        #[arg(long)]
        once: bool,
    },
    /// Serve a model over HTTP (OpenAI-compatible)
    Serve(ServeArgs),
    /// Chat with a model on the terminal
    Chat {
        #[command(flatten)]
        model: ModelArgs,
        #[command(flatten)]
        chat: chat::ChatArgs,
    },
    /// Print the log-probability of each token of a text
    Score {
        #[command(flatten)]
        model: ModelArgs,
        #[command(flatten)]
        score: score::ScoreArgs,
    },
    /// Answer typed questions about every row of a file, with exact probabilities
    Decide {
        #[command(flatten)]
        model: ModelArgs,
        #[command(flatten)]
        decide: decide::DecideArgs,
    },
    /// Compute the numbers of a receipt again and compare every bit
    Replay {
        #[command(flatten)]
        model: ModelArgs,
        #[command(flatten)]
        replay: replay::ReplayArgs,
    },
    /// List, show and replay the receipts that a server kept
    #[command(subcommand)]
    Ledger(ledger::LedgerCommand),
    /// Measure how good answers are, on questions whose answers are known
    Eval(eval::EvalArgs),
    /// Measure how fast a model runs here, beside what the machine can do at most
    Bench(bench::BenchArgs),
    /// Fetch a model by name and print its path
    Pull {
        /// Name of the model, such as smollm2-135m-instruct
        name: String,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Show what a GGUF file holds
    Inspect {
        /// The file
        file: PathBuf,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

/// Exit code of a measurement that the machine was too busy for.
const BUSY: u8 = 3;

/// Exit code of a run that answered some rows and not others.
const BAD_ROWS: u8 = 4;

/// Exit code of a receipt that could not be computed again.
const NOT_REPLAYED: u8 = 5;

fn main() -> ExitCode {
    let command = Cli::parse().command;
    for name in config::unknown_variables(&Cli::command()) {
        eprintln!(
            "warning: the variable {name} is no setting of assay; see --help for their names"
        );
    }
    match run(command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        // What differs is printed already.
        Err(error) if error.is::<replay::NotIdentical>() => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            if error.is::<replay::NotReplayed>() {
                return ExitCode::from(NOT_REPLAYED);
            }
            if error.is::<bench::MachineBusy>() {
                return ExitCode::from(BUSY);
            }
            if error.is::<decide::BadRows>() {
                return ExitCode::from(BAD_ROWS);
            }
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Demo { serve, once } => {
            let after = if once {
                demo::After::Exit
            } else {
                demo::After::KeepServing
            };
            demo::run(serve.resolve()?, after)
        }
        Command::Serve(args) => serve::run(args.resolve()?),
        Command::Chat { model, chat } => {
            serve::start_logging(LogFormat::Text, "warn");
            chat::run(model.resolve()?, chat)
        }
        Command::Score { model, score } => {
            serve::start_logging(LogFormat::Text, "warn");
            score::run(model.resolve()?, &score)
        }
        Command::Decide { model, decide } => {
            serve::start_logging(LogFormat::Text, "warn");
            decide::run(model, &decide)
        }
        Command::Replay { model, replay } => {
            serve::start_logging(LogFormat::Text, "warn");
            replay::run(model, &replay)
        }
        Command::Ledger(command) => {
            serve::start_logging(LogFormat::Text, "warn");
            ledger::run(command)
        }
        Command::Eval(args) => {
            serve::start_logging(LogFormat::Text, "warn");
            eval::run(args)
        }
        Command::Bench(args) => bench::run(args),
        Command::Pull { name, store } => {
            let store = store.resolve()?;
            let path = pull::pull(store.catalog.find(&name)?, &store.cache_dir)?;
            Ok(writeln!(std::io::stdout(), "{}", path.display())?)
        }
        Command::Inspect { file, json } => {
            let form = if json {
                inspect::Form::Json
            } else {
                inspect::Form::Text
            };
            inspect::inspect(&file, form, &mut std::io::stdout().lock())
        }
    }
}

/// `assay inspect F | head` is no failure.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|cause| cause.kind() == std::io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_that_mean_nothing_to_a_command_are_refused() {
        Cli::command().debug_assert();
        let parsed = |args: &[&str]| Cli::try_parse_from([&["assay"], args].concat());
        for flag in ["--threads", "--context", "--numerics", "--model"] {
            let error = parsed(&["pull", "gemma-3-270m", flag, "1"])
                .err()
                .expect("refused");
            assert!(error.to_string().contains(flag), "{error}");
        }
        assert!(parsed(&["pull", "gemma-3-270m", "--cache-dir", "x"]).is_ok());
    }

    #[test]
    fn a_variable_that_is_no_setting_is_named() {
        let names = [
            "HOME",
            "ASSAY_MODEL",
            "ASSAY_THREADS",
            "ASSAY_THREAD",
            "ASSAY_PORT",
        ];
        let unknown = config::unknown_among(&Cli::command(), names.map(str::to_owned));
        assert_eq!(unknown, ["ASSAY_THREAD"]);
    }
}
