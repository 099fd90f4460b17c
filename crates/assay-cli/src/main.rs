//! The `assay` binary: each subcommand is one module; settings come from `config/` alone.
#![forbid(unsafe_code)]

mod bench;
mod catalog;
mod channel;
mod chat;
mod cli;
mod config;
mod decide;
mod decision_client;
mod demo;
mod digest;
mod doctor;
mod draft_model;
mod eval;
mod exit;
mod inspect;
mod interrupt;
mod ledger;
mod load;
mod logging;
mod manual;
mod progress;
mod pull;
mod replay;
mod score;
mod serve;
mod system;
mod table;
mod terminal;
mod version;

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::FromArgMatches;

use crate::cli::{Cli, Command};
use crate::config::LogFormat;
use crate::exit::ExitStatus;
use crate::interrupt::Interrupt;
use crate::terminal::say;
use crate::version::Version;

fn main() -> ExitCode {
    let described = cli::command();
    let unknown = config::unknown_variables(&described);
    let parsed = Cli::from_arg_matches(&described.get_matches());
    // The matches are of the same definition.
    let command = parsed.unwrap_or_else(|error| error.exit()).command;
    for name in unknown {
        say(format_args!(
            "warning: the variable {name} is no setting of assay; see --help for their names"
        ));
    }
    let done = Interrupt::listen().and_then(|interrupt| run(command, &interrupt));
    let status = match &done {
        Ok(()) => ExitStatus::Done,
        Err(error) => {
            let status = ExitStatus::of(error);
            if status.is_said(error) {
                say(format_args!("error: {error:#}"));
            }
            status
        }
    };
    status.into()
}

fn run(command: Command, interrupt: &Interrupt) -> Result<()> {
    let warnings = || logging::start(LogFormat::Text, "warn", interrupt);
    match command {
        Command::Demo { serve, once, json } => {
            let after = if once {
                demo::After::Exit
            } else {
                demo::After::KeepServing
            };
            let form = if json {
                demo::Form::Json
            } else {
                demo::Form::Text
            };
            demo::run(serve.resolve()?, after, form, interrupt)
        }
        Command::Serve(args) => serve::run(args.resolve()?, interrupt),
        Command::Chat { model, chat } => {
            let _log = warnings()?;
            chat::run(model.resolve()?, chat, interrupt)
        }
        Command::Score { model, score } => {
            let _log = warnings()?;
            score::run(model.resolve()?, &score, interrupt)
        }
        Command::Decide { model, decide } => {
            let _log = warnings()?;
            decide::run(model, &decide, interrupt)
        }
        Command::Replay { model, replay } => {
            let _log = warnings()?;
            replay::run(model, &replay, interrupt)
        }
        Command::Ledger(command) => {
            let _log = warnings()?;
            ledger::run(command, interrupt)
        }
        Command::Eval(args) => {
            let _log = warnings()?;
            eval::run(args, interrupt)
        }
        Command::Bench(args) => bench::run(args, interrupt),
        Command::Pull { name, json, store } => {
            let store = store.resolve()?;
            let model = store.catalog.find(&name)?;
            let pulled = pull::pull(model, &store.cache_dir, interrupt)?;
            let mut out = terminal::stdout();
            match json {
                true => writeln!(out, "{}", pulled.json(model))?,
                false => writeln!(out, "{}", pulled.path.display())?,
            }
            Ok(())
        }
        Command::Inspect { file, json } => {
            let form = if json {
                inspect::Form::Json
            } else {
                inspect::Form::Text
            };
            inspect::inspect(&file, form, &mut terminal::stdout())
        }
        Command::Doctor(args) => doctor::run(*args),
        Command::Config => Ok(write!(terminal::stdout(), "{}", config::EXAMPLE)?),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man(args) => manual::man(&args),
        Command::Version { json } => {
            let (version, mut out) = (Version::read(), terminal::stdout());
            match json {
                true => writeln!(out, "{}", serde_json::to_string_pretty(&version)?)?,
                false => writeln!(out, "assay {version}")?,
            }
            Ok(())
        }
    }
}
