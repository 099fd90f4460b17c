//! `cargo xtask check`: everything a change must pass, in the order of what fails fastest.

use anyhow::Result;

use crate::run::{cargo, run as execute, succeeds};
use crate::test::TestArgs;

/// Checks licences, sources and duplicate or banned crates (`deny.toml`).
const CARGO_DENY: &str = "cargo-deny";

/// Runs all checks.
///
/// # Errors
/// At the first check that fails.
pub(crate) fn run() -> Result<()> {
    execute(cargo(&["fmt", "--all", "--check"]))?;
    crate::tidy::run()?;
    execute(cargo(&[
        "clippy",
        "--workspace",
        "--all-targets",
        "--quiet",
        "--",
        "-D",
        "warnings",
    ]))?;
    let mut doc = cargo(&[
        "doc",
        "--workspace",
        "--no-deps",
        "--document-private-items",
        "--quiet",
    ]);
    doc.env("RUSTDOCFLAGS", "-D warnings");
    execute(doc)?;
    if !succeeds(cargo(&["deny", "--version"])) {
        execute(cargo(&["install", "--quiet", "--locked", CARGO_DENY]))?;
    }
    execute(cargo(&["deny", "check", "bans", "licenses", "sources"]))?;
    crate::test::run(TestArgs::default())
}
