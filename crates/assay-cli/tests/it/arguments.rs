//! What the measuring commands refuse, and that they say what to do.

use std::process::Command;

use serde_json::Value;

use crate::binary::{assay, error_of, output};

#[test]
fn values_that_mean_nothing_are_refused_by_flag() {
    let cases: [(&[&str], &str); 8] = [
        (&["score"], "--text"),
        (&["score", "--text", "a", "--threads", "0"], "--threads"),
        (&["bench", "--prompt", "0"], "--prompt"),
        (&["bench", "--prompt", "512,x"], "--prompt"),
        (&["bench", "--gen", "0"], "--gen"),
        (&["bench", "--batch", "0"], "--batch"),
        (&["bench", "--repeats", "0"], "--repeats"),
        (&["bench", "--only", "everything"], "--only"),
    ];
    for (args, flag) in cases {
        let error = error_of(args, 2);
        assert!(error.contains(flag), "{args:?}: {error}");
    }
}

#[test]
fn a_missing_model_is_named() {
    let cases: [&[&str]; 2] = [
        &["score", "--text", "a", "--model", "none/such.gguf"],
        &["bench", "--force", "--model", "none/such.gguf"],
    ];
    for args in cases {
        let error = error_of(args, 1);
        assert!(error.contains("none/such.gguf"), "{args:?}: {error}");
    }
}

#[test]
fn help_names_every_flag() {
    let cases: [(&str, &[&str]); 2] = [
        ("score", &["--text", "--json", "--threads", "--model"]),
        (
            "bench",
            &[
                "--prompt",
                "--gen",
                "--batch",
                "--threads",
                "--only",
                "--repeats",
                "--force",
                "--json",
                "--model",
            ],
        ),
    ];
    for (command, flags) in cases {
        let output = output(assay(&[command, "--help"]), "");
        let help = String::from_utf8_lossy(&output.stdout);
        for flag in flags {
            assert!(help.contains(flag), "{command} --help: {flag} in {help}");
        }
    }
}

#[test]
fn the_version_names_build_numerics_and_instruction_set() {
    let printed = |args: &[&str]| {
        let output = output(assay(args), "");
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    let version: Value = serde_json::from_str(&printed(&["version", "--json"])).expect("JSON");
    let text = |key: &str| version[key].as_str().expect("text").to_owned();
    let isas = version["isas"].as_array().expect("a list");
    assert!(isas.contains(&version["isa"]), "{version}");
    let short = printed(&["-V"]);
    assert_eq!(short.lines().count(), 1, "{short}");
    for key in ["version", "profile", "target"] {
        assert!(short.contains(&text(key)), "{key}: {short}");
    }
    let long = printed(&["--version"]);
    for key in ["numerics", "isa", "prompt_format"] {
        assert!(long.contains(&text(key)), "{key}: {long}");
    }
    assert_eq!(long, printed(&["version"]));
}

#[test]
fn every_command_is_completed_in_every_shell_and_has_a_page() {
    let help = output(assay(&["--help"]), "");
    let help = String::from_utf8(help.stdout).expect("text");
    let listed = help.split("Commands:\n").nth(1).expect("commands");
    let listed = listed.split("\n\n").next().expect("their list");
    let commands: Vec<&str> = listed
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|command| *command != "help")
        .collect();
    assert!(commands.len() >= 15, "{commands:?}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = output(assay(&["completions", shell]), "");
        let script = String::from_utf8(script.stdout).expect("text");
        for command in &commands {
            assert!(script.contains(command), "{shell}: {command}");
        }
        assert!(script.contains("drain-timeout"), "{shell}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().to_str().expect("text");
    assert!(output(assay(&["man", "--out", out]), "").status.success());
    for command in &commands {
        let page = folder.path().join(format!("assay-{command}.1"));
        assert!(page.exists(), "{}", page.display());
    }
    let first = output(assay(&["man"]), "");
    let first = String::from_utf8(first.stdout).expect("text");
    assert!(
        first.contains(".TH assay 1") && first.contains("Exit status"),
        "{first}"
    );
}

/// The generated script is one that the shell takes.
#[test]
fn bash_takes_its_completions() {
    let script = output(assay(&["completions", "bash"]), "");
    let script = String::from_utf8(script.stdout).expect("text");
    // What it lacks is a shell to complete in, not a test.
    if Command::new("bash").arg("--version").output().is_err() {
        return;
    }
    let mut bash = Command::new("bash");
    bash.arg("-n");
    let checked = output(bash, &script);
    assert!(
        checked.status.success() && checked.stderr.is_empty(),
        "{checked:?}"
    );
}
