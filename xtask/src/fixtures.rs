//! What tests read but the repository does not hold: the two real models, by checksum, and the
//! reference tokenizer vectors. All land in the user's cache and are fetched once.

use anyhow::Result;

use crate::run::{cargo, command};

const MODELS: [&str; 2] = ["smollm2-135m-instruct", "gemma-3-270m"];

/// Fetches everything that is missing.
///
/// # Errors
/// If a download or its checksum fails.
pub(crate) fn run() -> Result<()> {
    pull_models()?;
    let mut vectors = command("python3");
    vectors.arg("tools/fetch_vocab_vectors.py");
    crate::run::run(vectors)
}

fn pull_models() -> Result<()> {
    for name in MODELS {
        crate::run::run(cargo(&[
            "run",
            "--quiet",
            "--package",
            "assay-cli",
            "--",
            "pull",
            name,
        ]))?;
    }
    Ok(())
}
