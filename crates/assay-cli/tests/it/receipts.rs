//! `assay replay` and `assay ledger` from outside, on a tiny model: another process, another instruction set, one thread.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use assay_testkit::tiny_model::TinyModel;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::binary::{assay, output};
use crate::serving::{Serving, ask};

/// A folder with a model, and room for ledgers and receipts.
pub(crate) struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut model = TinyModel::llama();
        model.set_ascii_vocabulary();
        std::fs::write(folder.path().join("tiny.gguf"), model.build()).expect("written");
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// A server of the model with this ledger.
    fn serve(&self, ledger: &str) -> Serving {
        let (model, cache) = (self.text("tiny.gguf"), self.text("cache"));
        let ledger = self.text(ledger);
        Serving::start(&[
            "--model",
            &model,
            "--cache-dir",
            &cache,
            "--ledger",
            &ledger,
        ])
    }

    /// `assay` with `args`, on one thread, with the model `model`.
    fn command(&self, args: &[&str], model: &str) -> Command {
        let (model, cache) = (self.text(model), self.text("cache"));
        let computed = ["--model", &model, "--cache-dir", &cache, "--threads", "1"];
        assay(&[args, &computed].concat())
    }

    fn run(&self, args: &[&str], model: &str, input: &str) -> Output {
        output(self.command(args, model), input)
    }
}

/// Status and standard output of a run.
#[track_caller]
pub(crate) fn check(output: &Output, status: i32, says: &str) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{text}{error}");
    let all = format!("{text}{error}");
    assert!(all.contains(says), "{says}: {all}");
    text
}

pub(crate) fn decision(number: usize) -> Value {
    json!({
        "input": format!("T{number}"),
        "questions": [
            {"type": "choice", "instructions": "?", "choices": [{"value": "Billing"}, {"value": "Tech"}]},
            {"type": "predicate", "instructions": "!"},
        ],
    })
}

pub(crate) fn chat(number: usize) -> Value {
    json!({
        "messages": [{"role": "user", "content": format!("{number}")}],
        "max_tokens": 4, "temperature": 1, "top_k": 20, "seed": number, "n": 2, "logprobs": true,
    })
}

#[test]
fn receipts_of_a_busy_server_are_identical_on_the_scalar_set_and_one_thread() {
    let bench = Bench::new();
    let server = bench.serve("ledger");
    let replies: Vec<Value> = std::thread::scope(|scope| {
        let asked = (0..8).map(|number| {
            let (path, mut body) = if number % 2 == 0 {
                ("/v1/decisions", decision(number))
            } else {
                ("/v1/chat/completions", chat(number))
            };
            body["receipt"] = json!(true);
            let server = &server;
            scope.spawn(move || server.ask(path, &body).expect("an answer"))
        });
        let asked: Vec<_> = asked.collect();
        asked
            .into_iter()
            .map(|one| one.join().expect("asked"))
            .collect()
    });
    drop(server);
    // The receipt alone, or the reply that holds it.
    for text in [replies[0]["receipt"].to_string(), replies[1].to_string()] {
        let replayed = bench.run(&["replay", "-"], "tiny.gguf", &text);
        check(&replayed, 0, "identical: ");
    }
    let path = bench.text("ledger");
    let args = ["ledger", "replay", &path, "--all", "--json"];
    let mut scalar = bench.command(&args, "tiny.gguf");
    scalar.env("ASSAY_ISA", "scalar");
    let replayed = output(scalar, "");
    let lines = check(&replayed, 0, "8 of 8 rows are identical");
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(line["result"], "identical", "{line}");
        assert!(line["values"].as_u64() > Some(3), "{line}");
    }
}

#[test]
fn what_differs_is_named_and_has_its_exit_code() {
    let bench = Bench::new();
    let server = bench.serve("ledger");
    let mut body = decision(1);
    body["receipt"] = json!(true);
    let receipt = server.ask("/v1/decisions", &body).expect("an answer")["receipt"].clone();
    drop(server);
    let text = receipt.to_string();
    let replay = |model: &str, text: &str| bench.run(&["replay", "-"], model, text);
    check(&replay("tiny.gguf", &text), 0, "identical");

    // One bit of the last weight.
    let mut model = std::fs::read(bench.path("tiny.gguf")).expect("the model");
    *model.last_mut().expect("weights") ^= 1;
    std::fs::write(bench.path("flipped.gguf"), &model).expect("written");
    let found = check(
        &replay("flipped.gguf", &text),
        1,
        "different: model.sha256: recorded ",
    );
    assert!(
        found.contains(receipt["model"]["sha256"].as_str().expect("a hash")),
        "{found}"
    );

    // The same path, changed behind the back of what remembers its hash.
    let kept = std::fs::read(bench.path("tiny.gguf")).expect("the model");
    std::fs::write(bench.path("tiny.gguf"), &model).expect("written");
    check(&replay("tiny.gguf", &text), 1, "different: model.sha256");
    std::fs::write(bench.path("tiny.gguf"), kept).expect("written");

    let mut gemma = TinyModel::gemma3();
    gemma.set_ascii_vocabulary();
    std::fs::write(bench.path("gemma.gguf"), gemma.build()).expect("written");
    check(&replay("gemma.gguf", &text), 1, "different: model.sha256");

    let changed = |member: &str, value: Value| {
        let mut receipt = receipt.clone();
        *receipt.pointer_mut(member).expect("a member") = value;
        receipt.to_string()
    };
    for (member, value, named) in [
        ("/prompt_token_ids/0", json!(1), "prompt_token_ids"),
        (
            "/outputs/0/label_mass_bits",
            json!("3ff0000000000000"),
            "outputs",
        ),
        (
            "/distribution_bits/0/probability_bits/0",
            json!("3ff0000000000000"),
            "distribution_bits",
        ),
        ("/created", json!(1), "created"),
        ("/model/name", json!("another"), "model"),
    ] {
        let found = replay("tiny.gguf", &changed(member, value));
        let says = format!("it was changed after it was made: {named}");
        check(&found, 1, &says);
    }
    check(&replay("tiny.gguf", "{}"), 1, "it has no `receipt_sha256`");
    check(&replay("tiny.gguf", &text[..text.len() - 1]), 1, "not JSON");
    let json = bench.run(&["replay", "-", "--json"], "flipped.gguf", &text);
    let verdict: Value = serde_json::from_str(&check(&json, 1, "")).expect("JSON");
    assert_eq!(
        (&verdict["result"], &verdict["place"]),
        (&json!("different"), &json!("model.sha256"))
    );

    // Nothing is said of a receipt that could not be read, or whose model is not there.
    check(&replay("none.gguf", &text), 5, "none.gguf");
    let missing = bench.text("missing.json");
    check(
        &bench.run(&["replay", &missing], "tiny.gguf", ""),
        5,
        "missing.json",
    );
}

/// All rows, the latest first.
fn rows(ledger: &Path) -> Vec<Value> {
    let path = ledger.display().to_string();
    let listed = output(
        assay(&["ledger", "list", &path, "--limit", "100000", "--json"]),
        "",
    );
    let lines = check(&listed, 0, "");
    lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

/// Whoever has an answer finds it in the ledger, whole, though the server was killed while it wrote.
#[test]
fn a_server_killed_amid_five_hundred_decisions_has_written_every_answer_it_gave() {
    const ASKED: usize = 500;
    const KILLED_AFTER: usize = 120;
    let question = |number: usize| json!({"input": number.to_string(), "questions": [{"type": "predicate", "instructions": "?"}]});
    let bench = Bench::new();
    let mut server = bench.serve("ledger");
    let url = server.url().to_owned();
    let (next, answered) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= ASKED {
                        break;
                    }
                    let Some(reply) = ask(&url, "/v1/decisions", &question(number)) else {
                        break;
                    };
                    let id = reply["id"].as_str().expect("a name").to_owned();
                    answered.lock().expect("no panic").push(id);
                }
            });
        }
        while answered.lock().expect("no panic").len() < KILLED_AFTER {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        server.kill();
    });
    let answered = answered.into_inner().expect("no panic");
    assert!(
        (KILLED_AFTER..ASKED).contains(&answered.len()),
        "{} answers",
        answered.len()
    );
    let listed = rows(&bench.path("ledger"));
    for id in &answered {
        let found = listed.iter().filter(|row| row["reply_id"] == id.as_str());
        assert_eq!(
            found.count(),
            1,
            "{id} was answered and is not in the ledger"
        );
    }
    // Whole: each is a receipt as it was made, and comes out again.
    let path = bench.text("ledger");
    let replayed = bench.run(&["ledger", "replay", &path, "--all"], "tiny.gguf", "");
    check(
        &replayed,
        0,
        &format!("{0} of {0} rows are identical", listed.len()),
    );
    // The next server goes on with the file.
    let server = bench.serve("ledger");
    server
        .ask("/v1/decisions", &decision(7))
        .expect("an answer");
    assert_eq!(rows(&bench.path("ledger")).len(), listed.len() + 1);
}

#[test]
fn decide_keeps_a_ledger_whose_rows_are_listed_shown_and_replayed() {
    let bench = Bench::new();
    let questions = json!({"questions": [{"type": "predicate", "instructions": "Spam?"}]});
    std::fs::write(bench.path("q.json"), questions.to_string()).expect("written");
    let (questions, ledger) = (bench.text("q.json"), bench.text("ledger"));
    let args = [
        "decide",
        "--questions",
        &questions,
        "--ledger",
        &ledger,
        "-",
    ];
    let decided = bench.run(&args, "tiny.gguf", "\"one\"\n\"two\"\n\"three\"\n");
    let answers = check(&decided, 0, "");
    assert_eq!(answers.lines().count(), 3);
    let listed = rows(&bench.path("ledger"));
    assert_eq!(listed.len(), 3);
    let shown = output(assay(&["ledger", "show", &ledger, "2"]), "");
    let receipt: Value = serde_json::from_str(&check(&shown, 0, "")).expect("JSON");
    let hash = receipt["receipt_sha256"].as_str().expect("a hash");
    let by_hash = bench.run(&["ledger", "replay", &ledger, hash, "1"], "tiny.gguf", "");
    check(&by_hash, 0, "2 of 2 rows are identical");
    let unknown = output(assay(&["ledger", "show", &ledger, "77"]), "");
    check(&unknown, 1, "no row `77`");
    let none = output(assay(&["ledger", "list", &questions]), "");
    check(&none, 1, "q.json");
    let neither = bench.run(&["ledger", "replay", &ledger], "tiny.gguf", "");
    check(&neither, 2, "<ROW>");
}
