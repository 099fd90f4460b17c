//! `assay eval decisions` and the page of `assay score --html` on the real model.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::binary::{assay, output};

const MODEL: &str = "smollm2-135m-instruct";
const TINY_SET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/tiny_set.jsonl");
const NUM_ROWS: usize = 5;

/// Standard output of a run that ends well.
fn printed(args: &[&str]) -> String {
    let output = output(assay(args), "");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {error}");
    String::from_utf8(output.stdout).expect("text")
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&printed(args)).expect("one JSON object")
}

/// What `assay decide` answers about the text of the tiny set's first row.
fn decided(folder: &Path) -> Value {
    let text = fs::read_to_string(TINY_SET).expect("readable");
    let mut lines = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    let (shared, row): (Value, Value) = (lines.next().expect("some"), lines.next().expect("some"));
    let (questions, rows) = (folder.join("questions.json"), folder.join("rows.jsonl"));
    fs::write(&questions, format!("[{}]", shared["question"])).expect("written");
    fs::write(&rows, row["input"].to_string()).expect("written");
    let (questions, rows) = (
        questions.to_str().expect("text"),
        rows.to_str().expect("text"),
    );
    let reply = json(&["decide", "--model", MODEL, "--questions", questions, rows]);
    reply["answers"][0].clone()
}

#[test]
fn an_evaluation_reads_what_decide_reads_and_goes_on_where_it_stopped() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("readings.jsonl");
    let out = path.to_str().expect("text");
    let ask = |more: &[&str]| {
        let args = [
            "eval",
            "decisions",
            "--model",
            MODEL,
            "--data",
            TINY_SET,
            "--rotations",
            "2",
            "--json",
            "--out",
            out,
        ];
        json(&[&args, more].concat())
    };
    // The set has as many rows; a speed is measured for every setting.
    let table = ask(&["--timed", "2"]);
    let rows = table["rows"].as_array().expect("a list");
    assert_eq!(
        rows.len(),
        8 + 8,
        "eight settings of one set, and their means"
    );
    for row in rows {
        assert_eq!(row["num_rows"], NUM_ROWS);
        let share = |name: &str| row[name].as_f64().expect("a number");
        assert!((0.0..=1.0).contains(&share("accuracy")) && (0.0..=2.0).contains(&share("brier")));
        assert!(share("label_mass") > 0.0 && share("label_mass") < 1.0);
    }
    assert!(
        rows[..8]
            .iter()
            .all(|row| row["decisions_per_second"].as_f64() > Some(0.0))
    );

    let lines = fs::read_to_string(&path).expect("readable");
    let answers: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .filter_map(|line: Value| line.get("answer").cloned())
        .collect();
    assert_eq!(answers.len(), NUM_ROWS * 8);
    let is_plain = |of: &Value| {
        of["line"] == 2 && of["setting"]["readout"] == "label" && of["setting"]["debias"] == "none"
    };
    let plain = answers
        .iter()
        .find(|answer| is_plain(&answer["of"]))
        .expect("read");
    let decided = decided(folder.path());
    // Numbers are written so that they read back to the same bits.
    let expected: Vec<&Value> = decided["probabilities"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| &one["probability"])
        .collect();
    assert_eq!(
        plain["probabilities"]
            .as_array()
            .expect("a list")
            .iter()
            .collect::<Vec<_>>(),
        expected
    );
    assert_eq!(plain["label_mass"], decided["label_mass"]);

    // Without the last 21 lines a run asks them again, and nothing else.
    let kept: Vec<&str> = lines.lines().collect();
    fs::write(&path, kept[..kept.len() - 21].join("\n") + "\n{\"answer\":").expect("written");
    let resumed = ask(&["--timed", "2", "--resume"]);
    assert_eq!(resumed["rows"], table["rows"]);
    assert_eq!(
        fs::read_to_string(&path).expect("readable").lines().count(),
        kept.len()
    );
    let again = json(&["eval", "decisions", "--readings", out, "--json"]);
    assert_eq!(again, resumed);
    let shown = printed(&["eval", "decisions", "--readings", out]);
    assert!(shown.contains("| tiny_set | 5 | label | none |"), "{shown}");
}

#[test]
fn a_heat_map_has_every_token_and_no_markup_of_the_text() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("page.html");
    let text = "One <script>alert(1)</script> & \"two\"\n日本 🙂 three.";
    let page_of = |more: &[&str]| {
        let args = [
            "score",
            "--model",
            MODEL,
            "--text",
            text,
            "--json",
            "--html",
            path.to_str().expect("text"),
        ];
        let report = json(&[&args, more].concat());
        (report, fs::read_to_string(&path).expect("written"))
    };
    let (report, page) = page_of(&["--top", "3"]);
    let tokens = report["tokens"].as_array().expect("a list");
    assert_eq!(page.matches("<i class=").count(), tokens.len());
    assert_eq!(page.matches("<script>").count(), 1, "the page's own");
    assert!(!page.contains("alert(1)</script>"));
    // Characters of several tokens are whole.
    assert!(page.contains('日') && page.contains('🙂'));
    for token in &tokens[1..] {
        let top = token["top"].as_array().expect("a list");
        assert_eq!(top.len(), 3);
        assert!(top[0]["logprob"].as_f64() >= token["logprob"].as_f64());
        assert!(page.contains(&token["logprob"].to_string()), "{token}");
    }
    let (plain, page) = page_of(&[]);
    assert!(plain["tokens"][1].get("top").is_none() && !page.contains("most likely</th>"));
    assert_eq!(plain["sum_bits"], report["sum_bits"]);
}
