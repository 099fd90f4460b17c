//! What each kind of end is told by: `docs/cli.md` has the list.

use crate::binary::{assay, error_of, output};
use crate::tiny::Tiny;

#[test]
fn wrong_usage_is_2_whether_flag_file_or_both() {
    let tiny = Tiny::new();
    let misspelt = tiny.write("misspelt.toml", "\nprot = 1\n");
    let cases: [(&[&str], &str); 8] = [
        (&["serve", "--prot", "1"], "--prot"),
        (&["serve", "--config", &misspelt], "line 2, `prot = 1`"),
        (
            &["pull", "gemma-3-270m", "--config", &misspelt],
            "`assay config`",
        ),
        (&["serve", "--host", "0.0.0.0"], "--api-key"),
        (&["chat", "--kv", "q8"], "--kv q8"),
        (&["score", "--text", "a", "--context", "0"], "--context"),
        (&["bench", "--device", "cuda"], "--device"),
        (&["demo", "--once", "--threads", "5000"], "--threads"),
    ];
    for (args, says) in cases {
        let error = error_of(args, 2);
        assert!(error.contains(says), "{args:?}: {error}");
    }
}

#[test]
fn failures_are_1_and_name_what_is_in_the_way() {
    let cases: [(&[&str], &str); 4] = [
        (&["pull", "no-such-model"], "known models: "),
        (&["inspect", "none/such.gguf"], "assay pull NAME"),
        (
            &["serve", "--port", "0", "--model", "none/such.gguf"],
            "none/such.gguf",
        ),
        (&["ledger", "list", "none/such"], "none/such"),
    ];
    for (args, says) in cases {
        let error = error_of(args, 1);
        assert!(error.contains(says), "{args:?}: {error}");
    }
}

#[test]
fn a_row_without_an_answer_is_4_and_the_others_are_answered() {
    let tiny = Tiny::new();
    let questions = tiny.write(
        "questions.json",
        r#"[{"type": "predicate", "instructions": "?"}]"#,
    );
    let rows = tiny.write("rows.jsonl", "\"one\"\nnot JSON\n\"three\"\n");
    let args = tiny.with_model(&["decide", "--questions", &questions, &rows]);
    let output = output(assay(&args), "");
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 3);
    let question = r#"{"question": {"type": "predicate", "instructions": "?"}}"#;
    let long = "x".repeat(100_000);
    let set = format!(
        "{question}\n{{\"input\": \"a\", \"answer\": true}}\n{{\"input\": \"{long}\", \"answer\": true}}\n"
    );
    let set = tiny.write("set.jsonl", &set);
    let args = [
        "eval",
        "decisions",
        "--data",
        &set,
        "--timed",
        "0",
        "--readout",
        "label",
        "--debias",
        "none",
    ];
    let output = crate::binary::output(assay(&tiny.with_model(&args)), "");
    assert_eq!(output.status.code(), Some(4), "{output:?}");
}

#[test]
fn a_receipt_that_cannot_be_read_is_5() {
    error_of(&["replay", "none/such"], 5);
}
