//! `assay eval`: how good answers are, on questions whose answers are known.

mod decisions;
mod figures;
mod labelled;
mod readings;
mod settings;
mod table;

use anyhow::Result;
use clap::{Args, Subcommand};

use crate::config::ModelArgs;
use crate::interrupt::Interrupt;

/// What to evaluate.
#[derive(Args, Clone, Debug)]
pub(crate) struct EvalArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Clone, Debug, Subcommand)]
enum What {
    /// Typed decisions on labelled sets: accuracy, calibration, stability, speed
    Decisions {
        #[command(flatten)]
        model: ModelArgs,
        #[command(flatten)]
        decisions: decisions::DecisionsArgs,
    },
}

/// Evaluates and prints a table.
///
/// # Errors
/// If a file cannot be read or written, the model does not load, or the server is not to be reached.
pub(crate) fn run(args: EvalArgs, interrupt: &Interrupt) -> Result<()> {
    match args.what {
        What::Decisions { model, decisions } => decisions::run(model, &decisions, interrupt),
    }
}
