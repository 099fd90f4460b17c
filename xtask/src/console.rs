//! The browser console: its packages, its types, that the committed build is what its source builds, and the browser
//! that its tests drive.

use anyhow::Result;

use crate::run::{command, run as execute, succeeds};

const SOURCE: &str = "console";
const TESTS: &str = "tests/clients/console";

/// Checks types and build, and sets up what the tests in a browser need; says so where it cannot.
///
/// # Errors
/// A type does not fit the API's, or the committed assets are not what the source builds.
pub(crate) fn check() -> Result<()> {
    npm(&["ci", "--silent", "--ignore-scripts", "--prefix", SOURCE])?;
    npm(&["run", "--silent", "check", "--prefix", SOURCE])?;
    npm(&[
        "run", "--silent", "build", "--prefix", SOURCE, "--", "--check",
    ])?;
    npm(&["ci", "--silent", "--ignore-scripts", "--prefix", TESTS])?;
    install_browser();
    Ok(())
}

/// Builds the console into the server's assets.
///
/// # Errors
/// If npm cannot install its packages or the build fails.
pub(crate) fn build() -> Result<()> {
    npm(&["ci", "--silent", "--ignore-scripts", "--prefix", SOURCE])?;
    npm(&["run", "--silent", "check", "--prefix", SOURCE])?;
    npm(&["run", "--silent", "build", "--prefix", SOURCE])
}

fn npm(args: &[&str]) -> Result<()> {
    let mut npm = command("npm");
    npm.args(args);
    execute(npm)
}

fn install_browser() {
    if std::env::var_os("CHROMIUM").is_some() || succeeds(quiet("chromium", &["--version"])) {
        return;
    }
    let installed = [
        &["update", "-qq"][..],
        &["install", "-y", "-qq", "chromium"],
    ]
    .iter()
    .all(|args| execute(quiet("apt-get", args)).is_ok());
    if !installed {
        eprintln!(
            "Chromium is not installed and apt-get cannot install it (it needs Debian and root): the console's tests \
             in a browser are LEFT OUT. Install it, or name one by CHROMIUM=PATH."
        );
    }
}

fn quiet(program: &str, args: &[&str]) -> std::process::Command {
    let mut command = command(program);
    command.args(args).env("DEBIAN_FRONTEND", "noninteractive");
    command
}
