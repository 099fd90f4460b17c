//! `cargo xtask openapi`: writes `docs/openapi.json`, which the server answers with, from the code that it describes.

use std::fs;

use anyhow::{Context, Result, bail};

use crate::run::{cargo, root};

/// Writes the document.
///
/// # Errors
/// Readers, samples and words do not agree (the tool says where), or the file cannot be written.
pub(crate) fn write() -> Result<()> {
    let mut tool = cargo(&["run", "--quiet", "-p", "assay-openapi"]);
    let made = tool.stderr(std::process::Stdio::inherit()).output();
    let made = made.context("cannot run cargo")?;
    if !made.status.success() {
        bail!("the document cannot be made");
    }
    let path = root().join("docs/openapi.json");
    fs::write(&path, made.stdout).with_context(|| format!("cannot write {}", path.display()))
}
