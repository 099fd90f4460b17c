//! Rules of the repository that no compiler checks: dependencies point one way, every crate stands in
//! ARCHITECTURE.md, `unsafe` stays where it is allowed, files stay readable, the list of faults is true.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::run::root;

/// Crates from leaf to binary; each may depend on earlier ones of its chain only.
const ALLOWED_DEPENDENCIES: [(&str, &[&str]); 10] = [
    ("assay-formats", &[]),
    ("assay-kernels", &["assay-formats"]),
    ("assay-tokenizer", &["assay-formats"]),
    ("assay-models", &["assay-formats", "assay-kernels"]),
    ("assay-constrain", &["assay-tokenizer"]),
    (
        "assay-engine",
        &[
            "assay-constrain",
            "assay-kernels",
            "assay-models",
            "assay-tokenizer",
        ],
    ),
    ("assay-api", &[]),
    ("assay-openapi", &["assay-api"]),
    (
        "assay-server",
        &[
            "assay-api",
            "assay-constrain",
            "assay-engine",
            "assay-models",
            "assay-tokenizer",
        ],
    ),
    (
        "assay-cli",
        &[
            "assay-constrain",
            "assay-engine",
            "assay-formats",
            "assay-kernels",
            "assay-models",
            "assay-server",
            "assay-tokenizer",
        ],
    ),
];

/// Crates that may hold `unsafe`.
const UNSAFE_ALLOWED: [&str; 2] = ["assay-formats", "assay-kernels"];

/// Longest source file; beyond it a noun is missing.
const MAX_FILE_LINES: usize = 500;

/// Checks all rules and reports every violation at once.
///
/// # Errors
/// If a rule is broken or a file cannot be read.
pub(crate) fn run() -> Result<()> {
    let mut faults = Vec::new();
    let architecture = read(&root().join("ARCHITECTURE.md"))?;
    for (name, allowed) in ALLOWED_DEPENDENCIES {
        let dir = root().join("crates").join(name);
        check_dependencies(name, allowed, &read(&dir.join("Cargo.toml"))?, &mut faults);
        if !architecture.contains(&format!("`{name}`")) {
            faults.push(format!("ARCHITECTURE.md does not mention `{name}`"));
        }
        let mut sources = Vec::new();
        collect_sources(&dir.join("src"), &mut sources)?;
        for path in sources {
            check_source(name, &path, &read(&path)?, &mut faults);
        }
    }
    faults.extend(crate::faults::check(&root(), &all_sources()?)?);
    if !faults.is_empty() {
        bail!("tidy:\n  {}", faults.join("\n  "));
    }
    Ok(())
}

/// Text of every source and test of the crates.
fn all_sources() -> Result<Vec<String>> {
    let mut paths = Vec::new();
    collect_sources(&root().join("crates"), &mut paths)?;
    paths.iter().map(|path| read(path)).collect()
}

fn check_dependencies(name: &str, allowed: &[&str], manifest: &str, faults: &mut Vec<String>) {
    let normal = manifest.split("[dependencies]").nth(1).unwrap_or_default();
    let normal = normal.split("\n[").next().unwrap_or_default();
    for line in normal.lines().filter(|line| line.starts_with("assay-")) {
        let dependency = line.split(['.', ' ', '=']).next().unwrap_or_default();
        if !allowed.contains(&dependency) {
            faults.push(format!("{name} must not depend on {dependency}"));
        }
    }
}

fn check_source(name: &str, path: &Path, text: &str, faults: &mut Vec<String>) {
    let shown = path
        .strip_prefix(root())
        .unwrap_or(path)
        .display()
        .to_string();
    if !text.starts_with("//!") {
        faults.push(format!("{shown} has no `//!` header"));
    }
    let lines = text.lines().count();
    if lines > MAX_FILE_LINES {
        faults.push(format!(
            "{shown} has {lines} lines (at most {MAX_FILE_LINES})"
        ));
    }
    let is_root = path.ends_with("src/lib.rs") || path.ends_with("src/main.rs");
    if is_root && !UNSAFE_ALLOWED.contains(&name) && !text.contains("#![forbid(unsafe_code)]") {
        faults.push(format!("{shown} must forbid unsafe code"));
    }
    let reads_environment = text.contains("std::env::var") || text.contains("env::var_os");
    if reads_environment && !shown.contains("assay-cli/src/config/") {
        faults.push(format!(
            "{shown} reads the environment; only the CLI's config may"
        ));
    }
}

fn collect_sources(dir: &Path, into: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            collect_sources(&path, into)?;
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            into.push(path);
        }
    }
    into.sort();
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_repository_is_tidy() {
        super::run().unwrap();
    }
}
