//! What describes the command line for others: manual pages, and scripts that complete words in a shell.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use clap_complete::Shell;

use crate::{cli, terminal};

/// Which pages.
#[derive(Args, Clone, Debug)]
pub(crate) struct ManArgs {
    /// Write a page for each command into this folder instead of printing the first
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Prints `assay.1`, or writes all pages.
///
/// # Errors
/// If they cannot be written.
pub(crate) fn man(args: &ManArgs) -> Result<()> {
    match &args.out {
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(cli::command()).render(&mut page)?;
            Ok(terminal::stdout().write_all(&page)?)
        }
        Some(folder) => write_pages(folder)
            .with_context(|| format!("--out: cannot write into {}", folder.display())),
    }
}

fn write_pages(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    clap_mangen::generate_to(cli::command(), folder)?;
    Ok(())
}

/// Prints the script that completes commands and flags in `shell`.
///
/// # Errors
/// If nobody reads it.
pub(crate) fn completions(shell: Shell) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut cli::command(), "assay", &mut script);
    Ok(terminal::stdout().write_all(&script)?)
}
