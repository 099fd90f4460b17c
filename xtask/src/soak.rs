//! `cargo xtask soak`: the invariance matrix, sampled, and mixed traffic, in a release build.

use anyhow::Result;
use clap::Args;

use crate::run::{cargo, run as execute};

#[derive(Args)]
pub(crate) struct SoakArgs {
    /// Passed on; `--help` lists them
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGS"
    )]
    args: Vec<String>,
}

/// Runs the soak with the given arguments.
///
/// # Errors
/// If it cannot be built, or anything failed in it.
pub(crate) fn run(args: SoakArgs) -> Result<()> {
    let mut command = cargo(&[
        "run",
        "--release",
        "--quiet",
        "--package",
        "assay-soak",
        "--",
    ]);
    command.args(args.args);
    execute(command)
}
