//! `cargo xtask openapi`: writes `docs/openapi.json`, which the server answers with, and `docs/api.md` from the code that
//! they describe.

use std::fs;
use std::process::Stdio;

use anyhow::{Context, Result, bail};

use crate::run::{cargo, root};

/// Writes the document and the page for readers.
///
/// # Errors
/// Readers, samples and words do not agree (the tool says where), or a file cannot be written.
pub(crate) fn write() -> Result<()> {
    make(&[], "docs/openapi.json")?;
    make(&["--", "--markdown"], "docs/api.md")
}

fn make(arguments: &[&str], path: &str) -> Result<()> {
    let mut tool = cargo(&["run", "--quiet", "-p", "assay-openapi"]);
    let made = tool.args(arguments).stderr(Stdio::inherit()).output();
    let made = made.context("cannot run cargo")?;
    if !made.status.success() {
        bail!("{path} cannot be made");
    }
    let path = root().join(path);
    fs::write(&path, made.stdout).with_context(|| format!("cannot write {}", path.display()))
}
