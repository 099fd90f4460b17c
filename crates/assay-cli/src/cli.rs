//! The command line: every command with its arguments.

use std::path::PathBuf;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use crate::config::{ModelArgs, ServeArgs, StoreArgs};
use crate::version::Version;
use crate::{bench, chat, decide, doctor, eval, exit, ledger, manual, replay, score};

/// Answers from open language models, with exact and repeatable probabilities.
#[derive(Parser)]
#[command(
    name = "assay",
    about = "Answers from open language models, with exact and repeatable probabilities",
    after_help = exit::HELP
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Fetch the default model, serve it, ask one question, print the answer with its probabilities
    Demo {
        #[command(flatten)]
        serve: ServeArgs,
        /// Exit after printing instead of leaving the server up
        #[arg(long)]
        once: bool,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
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
    /// Fetch a model by name and print its path; a download that broke off goes on
    Pull {
        /// Name of the model, such as smollm2-135m-instruct
        name: String,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
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
    /// Look whether `serve` would work well here with the same settings, and say what to do where not
    Doctor(Box<doctor::DoctorArgs>),
    /// Print a configuration file with every key at its default
    Config,
    /// Print the script that completes commands and flags in a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page, or write one for each command
    Man(manual::ManArgs),
    /// Print build, instruction set and numerics version
    Version {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

/// The whole command line, for parsing and for whoever describes it.
pub(crate) fn command() -> clap::Command {
    let version = Version::read();
    // `clap` takes words that live as long as the program; these are made once.
    let leaked = |words: String| -> &'static str { Box::leak(words.into_boxed_str()) };
    Cli::command()
        .version(leaked(version.build()))
        .long_version(leaked(version.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    #[test]
    fn flags_that_mean_nothing_to_a_command_are_refused() {
        command().debug_assert();
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
        let unknown = config::unknown_among(&command(), names.map(str::to_owned));
        assert_eq!(unknown, ["ASSAY_THREAD"]);
    }
}
