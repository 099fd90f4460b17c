//! Bars and colours are for terminals, and for people who want them.

use std::process::Command;

use crate::binary::{assay, output};
use crate::tiny::Tiny;

/// What `args` shows on a terminal, which Python makes; `None` where there is no Python.
fn on_terminal(args: &[String], variables: &[(&str, &str)]) -> Option<String> {
    const SPAWN: &str = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)";
    Command::new("python3").arg("--version").output().ok()?;
    let inner = assay(args);
    let mut command = Command::new("python3");
    command.args(["-c", SPAWN]).arg(inner.get_program());
    command.args(inner.get_args());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.env_remove("NO_COLOR").env("TERM", "xterm-256color");
    command.envs(variables.iter().copied());
    let shown = output(command, "");
    assert!(shown.status.success(), "{args:?}: {shown:?}");
    Some(String::from_utf8_lossy(&shown.stdout).into_owned())
}

#[test]
fn colours_are_for_terminals_that_show_them() {
    let tiny = Tiny::new();
    let args = tiny.with_model(&["doctor", "--port", "0"]);
    for (variables, is_coloured) in [
        (&[][..], true),
        (&[("NO_COLOR", "1")][..], false),
        // As the agreement has it, an empty one says nothing.
        (&[("NO_COLOR", "")][..], true),
        (&[("TERM", "dumb")][..], false),
    ] {
        let Some(shown) = on_terminal(&args, variables) else {
            return;
        };
        assert!(shown.contains("numerics"), "{shown}");
        assert_eq!(
            shown.contains("\x1b[3"),
            is_coloured,
            "{variables:?}: {shown}"
        );
    }
}

#[test]
fn bars_are_for_terminals() {
    let tiny = Tiny::new();
    let questions = tiny.write(
        "questions.json",
        r#"[{"type": "predicate", "instructions": "?"}]"#,
    );
    let rows: String = (0..40).map(|row| format!("\"row {row}\"\n")).collect();
    let rows = tiny.write("rows.jsonl", &rows);
    let out = tiny.arg("answers.jsonl");
    let args = tiny.with_model(&["decide", "--questions", &questions, &rows, "--out", &out]);
    let piped = output(assay(&args), "");
    assert!(piped.status.success(), "{piped:?}");
    assert!(
        piped.stdout.is_empty() && piped.stderr.is_empty(),
        "{piped:?}"
    );
    if let Some(shown) = on_terminal(&args, &[]) {
        assert!(
            shown.contains("deciding") && shown.contains("/40 rows"),
            "{shown}"
        );
    }
}

#[test]
fn a_chat_for_scripts_is_an_object_a_reply() {
    let tiny = Tiny::new();
    let args = tiny.with_model(&["chat", "--json", "--max-tokens", "4", "--temperature", "0"]);
    let chatted = output(assay(&args), "Hi\n\nAgain\n/quit\n");
    assert!(chatted.status.success(), "{chatted:?}");
    let lines = String::from_utf8(chatted.stdout).expect("text");
    let replies: Vec<serde_json::Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(replies.len(), 2, "{lines}");
    for reply in replies {
        let tokens = reply["tokens"].as_array().expect("a list");
        assert!(!tokens.is_empty() && tokens.len() <= 4, "{reply}");
        let sum: f64 = tokens
            .iter()
            .map(|token| token["logprob"].as_f64().expect("a number"))
            .sum();
        assert_eq!(reply["logprob"].as_f64(), Some(sum), "{reply}");
        assert!(reply["reply"].is_string(), "{reply}");
    }
}
