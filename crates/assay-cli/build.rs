//! What `assay version` says of the build: target, profile, and the commit of a release build.
//!
//! Development builds carry no commit: each one would link every test anew.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=BUILD_OF_ASSAY_COMMIT");
    let variable = |name| env::var(name).unwrap_or_default();
    let (profile, target) = (variable("PROFILE"), variable("TARGET"));
    println!("cargo::rustc-env=BUILD_OF_ASSAY_PROFILE={profile}");
    println!("cargo::rustc-env=BUILD_OF_ASSAY_TARGET={target}");
    // Where sources come without their history, as in a container, whoever builds may name the commit.
    let named = Some(variable("BUILD_OF_ASSAY_COMMIT")).filter(|commit| !commit.is_empty());
    let root = Path::new(&variable("CARGO_MANIFEST_DIR")).join("../..");
    let commit = named.or_else(|| (profile == "release").then(|| commit_of(&root)).flatten());
    if let Some(commit) = commit {
        println!("cargo::rustc-env=BUILD_OF_ASSAY_COMMIT={commit}");
    }
}

/// The short name of the commit that is checked out in `root`, with `-dirty` where files differ from it.
fn commit_of(root: &Path) -> Option<String> {
    // Not the history of a folder that these sources merely lie in.
    let top = PathBuf::from(git(root, &["rev-parse", "--show-toplevel"])?);
    if top.canonicalize().ok()? != root.canonicalize().ok()? {
        return None;
    }
    let log = git(root, &["rev-parse", "--git-path", "logs/HEAD"])?;
    for path in [root.join(log), root.join("crates"), root.join("Cargo.lock")] {
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    let commit = git(root, &["rev-parse", "--short=12", "HEAD"])?;
    let changed = git(root, &["status", "--porcelain", "--untracked-files=no"])?;
    Some(match changed.is_empty() {
        true => commit,
        false => format!("{commit}-dirty"),
    })
}

fn git(root: &Path, args: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .args(args)
        .current_dir(root)
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
