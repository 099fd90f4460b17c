//! What is written about the command line, and what is packed around it, is true of the binary.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::binary::{assay, output};

fn text(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn help(args: &[&str]) -> String {
    let output = output(assay(&[args, &["--help"]].concat()), "");
    String::from_utf8(output.stdout).expect("text")
}

/// Names of variables that begin like a setting's.
fn variables(text: &str) -> BTreeSet<&str> {
    let is_name = |letter: char| letter.is_ascii_uppercase() || letter == '_';
    let words = text.split(|letter| !is_name(letter));
    words.filter(|word| word.starts_with("ASSAY_")).collect()
}

/// Settings of the server, and the two that only a build and a test have.
fn known_variables(help: &str) -> BTreeSet<&str> {
    let hidden = ["ASSAY_ISA", "BUILD_OF_ASSAY_COMMIT"];
    variables(help).into_iter().chain(hidden).collect()
}

#[test]
fn the_page_has_every_command_status_and_variable() {
    let page = text("docs/cli.md");
    let all = help(&[]);
    let (_, listed) = all.split_once("Commands:\n").expect("commands");
    let (commands, _) = listed.split_once("\n\n").expect("their list");
    for line in commands.lines() {
        let command = line.split_whitespace().next().expect("a name");
        let row = format!("| `assay {command}` |");
        assert!(command == "help" || page.contains(&row), "{row}");
    }
    let (_, statuses) = all.split_once("Exit status:\n").expect("statuses");
    for line in statuses.lines().filter(|line| !line.trim().is_empty()) {
        let status = line.split_whitespace().next().expect("a number");
        let row = format!("| {status} |");
        assert!(page.contains(&row), "{row}");
    }
    let serve = help(&["serve"]);
    let named = variables(&page);
    for variable in variables(&serve) {
        assert!(named.contains(variable), "{variable} is not on the page");
    }
    let known = known_variables(&serve);
    for variable in named.iter().filter(|name| **name != "ASSAY_") {
        assert!(known.contains(variable), "{variable} is no setting");
    }
}

#[test]
fn what_is_packed_around_it_says_what_it_takes() {
    let serve = help(&["serve"]);
    let known = known_variables(&serve);
    for path in [
        "packaging/Dockerfile",
        "packaging/compose.yaml",
        "packaging/assay.service",
    ] {
        for variable in variables(&text(path)) {
            assert!(known.contains(variable), "{path}: {variable}");
        }
    }
    let toolchain = text("rust-toolchain.toml");
    let version = toolchain.split('"').nth(1).expect("a version");
    let dockerfile = text("packaging/Dockerfile");
    for place in [
        format!("rust:{version}-"),
        format!("RUSTUP_TOOLCHAIN={version}\n"),
    ] {
        assert!(dockerfile.contains(&place), "{place}");
    }
    // Whoever stops the server waits longer than it drains.
    let drain: u64 = number_behind(&text("crates/assay-cli/assay.toml"), "\ndrain-timeout = ");
    for (path, key) in [
        ("packaging/assay.service", "TimeoutStopSec="),
        ("packaging/compose.yaml", "stop_grace_period: "),
    ] {
        assert!(number_behind(&text(path), key) > drain, "{path}");
    }
}

fn number_behind(text: &str, key: &str) -> u64 {
    let (_, rest) = text.split_once(key).unwrap_or_else(|| panic!("no {key}"));
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().expect("a number")
}
