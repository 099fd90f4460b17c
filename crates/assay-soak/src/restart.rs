//! A cell once more in a new process: what a restart of the machine's server is to its clients.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::cells::CellCounts;

/// Runs cell `index` of `seed` on `model` in a new process of this program; `Some` says how its bits differ from those
/// of the cell that `counts` saw last. A cell whose condition did not come about there proves nothing.
///
/// # Errors
/// The process did not run.
pub fn repeat_cell(
    (model, models_dir): (&str, &Path),
    seed: u64,
    index: u64,
    counts: &mut CellCounts,
) -> Result<Option<String>> {
    let Some(here) = counts.last else {
        return Ok(None);
    };
    let program = std::env::current_exe()?;
    let output = Command::new(program)
        .args(["--requests", "0", "--http", "0", "--cells", "1", "--json"])
        .args(["--restart-every", "0", "--models", model])
        .args(["--seed", &seed.to_string(), "--first", &index.to_string()])
        .arg("--models-dir")
        .arg(models_dir)
        .output()
        .context("the new process did not start")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Ok(Some(format!("it fails in a new process: {said}")));
    }
    let report: Value = serde_json::from_slice(&output.stdout)
        .context("the new process did not print its counts")?;
    let cells = &report["models"][0]["cells"];
    if cells["held"] != 1 {
        return Ok(None);
    }
    let there = &cells["last_cell"];
    let (Some(there_seed), Some(hash)) = (there["seed"].as_u64(), there["replies_hash"].as_u64())
    else {
        bail!("the new process printed no bits: {report}");
    };
    if (there_seed, hash) == (here.seed, here.hash) {
        counts.num_repeated += 1;
        return Ok(None);
    }
    Ok(Some(format!(
        "seed {there_seed}, hash {hash:016x} in a new process; seed {}, hash {:016x} here",
        here.seed, here.hash
    )))
}
