//! What the measuring commands refuse, and that they say what to do.

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
