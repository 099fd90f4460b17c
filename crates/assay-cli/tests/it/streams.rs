//! Readers that leave: of the output, which is no failure, and of the error stream, which changes nothing.

use std::process::Stdio;

use crate::binary::assay;
use crate::tiny::Tiny;

/// Status and error output of `args` whose output nobody reads.
fn without_reader(args: &[impl AsRef<std::ffi::OsStr>]) -> (Option<i32>, String) {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let child = assay(args)
        .stdin(Stdio::null())
        .stdout(writer)
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary is built");
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), said)
}

#[test]
fn a_reader_that_leaves_ends_it_quietly() {
    let tiny = Tiny::new();
    let model = tiny.arg("tiny.gguf");
    let questions = tiny.write(
        "questions.json",
        r#"[{"type": "predicate", "instructions": "?"}]"#,
    );
    let rows = tiny.write("rows.jsonl", "\"one\"\n\"two\"\n");
    for args in [
        &["config"][..],
        &["inspect", &model],
        &["inspect", &model, "--json"],
    ] {
        assert_eq!(without_reader(args), (Some(0), String::new()), "{args:?}");
    }
    for args in [
        &["score", "--text", "a b c"][..],
        &["score", "--text", "a b c", "--json"],
        &["decide", "--questions", &questions, &rows],
    ] {
        let found = without_reader(&tiny.with_model(args));
        assert_eq!(found, (Some(0), String::new()), "{args:?}");
    }
}

#[test]
fn an_error_stream_that_is_closed_changes_no_status() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = assay(&["pull", "no-such-model"]);
    let status = command.stdout(Stdio::null()).stderr(writer).status();
    assert_eq!(status.expect("it runs").code(), Some(1));
}
