//! Labelled sets: one JSONL file each, a line a question with its answer.
//!
//! A line is `{"input": …, "question": {…}, "answer": …}`, input and question as in `/v1/decisions`. A first line with a
//! question alone holds for all lines without one.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::decide::questions;

/// Questions with answers.
#[derive(Debug)]
pub(super) struct LabelledSet {
    /// The file's name without its ending.
    pub(super) name: String,
    /// In the file's order.
    pub(super) rows: Vec<LabelledRow>,
}

/// A question about something, and its answer.
#[derive(Debug)]
pub(super) struct LabelledRow {
    /// Line of the file, from 1.
    pub(super) line: usize,
    /// JSON, as `input` of a request.
    pub(super) input: String,
    /// What is asked.
    pub(super) question: Arc<Asked>,
    /// Share of each answer in the truth, in the question's order, yes before no.
    pub(super) truth: Vec<f64>,
}

/// A question as a request holds it.
#[derive(Debug)]
pub(super) struct Asked {
    /// JSON.
    pub(super) text: String,
    /// The same with its options in reverse, where they have an order that could be another.
    pub(super) reversed: Option<String>,
    value: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    input: Option<Box<RawValue>>,
    question: Option<Value>,
    answer: Option<Value>,
}

/// The sets at `paths`: files, and folders of them.
///
/// # Errors
/// If one cannot be read or is of another form; the message names the line.
pub(super) fn read_all(paths: &[PathBuf]) -> Result<Vec<LabelledSet>> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            files.extend(files_in(path)?);
        } else {
            files.push(path.clone());
        }
    }
    let sets = files.iter().map(|path| {
        let shown = path.display();
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        parse(&name, &text).with_context(|| format!("{shown}"))
    });
    sets.collect()
}

fn files_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let shown = folder.display();
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {shown}"))?;
    let paths = entries.map(|entry| Ok(entry?.path()));
    let mut paths: Vec<PathBuf> = paths.collect::<Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
    paths.sort();
    if paths.is_empty() {
        bail!("{shown} holds no .jsonl file");
    }
    Ok(paths)
}

fn parse(name: &str, text: &str) -> Result<LabelledSet> {
    let mut shared = None;
    let mut rows = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let number = index + 1;
        let content = Content::read(line).with_context(|| format!("line {number}"))?;
        match content {
            Content::Shared(question) if rows.is_empty() => shared = Some(question),
            Content::Shared(_) => bail!("line {number}: has no `input`"),
            Content::Row {
                input,
                question,
                answer,
            } => {
                let question = question.or_else(|| shared.clone());
                let row = row(number, &input, question, &answer);
                rows.push(row.with_context(|| format!("line {number}"))?);
            }
        }
    }
    if rows.is_empty() {
        bail!("holds no row");
    }
    Ok(LabelledSet {
        name: name.to_owned(),
        rows,
    })
}

fn row(
    line: usize,
    input: &RawValue,
    question: Option<Arc<Asked>>,
    answer: &Value,
) -> Result<LabelledRow> {
    let question = question.context("has no `question`, and no first line gives one")?;
    Ok(LabelledRow {
        line,
        input: questions::input(input.get()),
        truth: question.truth(answer)?,
        question,
    })
}

/// What a line may be.
enum Content {
    Shared(Arc<Asked>),
    Row {
        input: Box<RawValue>,
        question: Option<Arc<Asked>>,
        answer: Value,
    },
}

impl Content {
    fn read(line: &str) -> Result<Self> {
        let line: Line = serde_json::from_str(line)?;
        let question = line.question.map(Asked::new).transpose()?.map(Arc::new);
        match (line.input, question, line.answer) {
            (None, Some(question), None) => Ok(Self::Shared(question)),
            (Some(input), question, Some(answer)) => Ok(Self::Row {
                input,
                question,
                answer,
            }),
            (None, ..) => bail!("has no `input`"),
            (_, _, None) => bail!("has no `answer`"),
        }
    }
}

impl LabelledSet {
    /// Keeps `limit` rows of its own, in the file's order: those whose line number hashes lowest together with `seed`.
    /// A larger sample of the same seed holds the smaller one.
    pub(super) fn sample(&mut self, limit: usize, seed: u64) {
        let hash = |row: &LabelledRow| {
            let line = row.line as u64;
            Sha256::digest([seed.to_le_bytes(), line.to_le_bytes()].concat())
        };
        self.rows.sort_by_cached_key(hash);
        self.rows.truncate(limit);
        self.rows.sort_by_key(|row| row.line);
    }
}

impl Asked {
    fn new(value: Value) -> Result<Self> {
        let reversed = match value.get("type").and_then(Value::as_str) {
            Some("choice") => {
                let choices = value.get("choices").and_then(Value::as_array);
                let choices = choices.context("`question.choices` is no list")?;
                let mut reversed = value.clone();
                reversed["choices"] = choices.iter().rev().cloned().collect();
                Some(reversed.to_string())
            }
            Some("predicate" | "score") => None,
            _ => bail!("`question.type` is none of predicate, choice, score"),
        };
        Ok(Self {
            text: value.to_string(),
            reversed,
            value,
        })
    }

    /// Share of each answer where `answer` is what the line says: a predicate's flag or probability, a choice's value, a
    /// level's number.
    fn truth(&self, answer: &Value) -> Result<Vec<f64>> {
        let list = |name: &str| {
            let list = self.value.get(name).and_then(Value::as_array);
            list.with_context(|| format!("`question.{name}` is no list"))
        };
        if let Some(choices) = self.value.get("choices").and_then(Value::as_array) {
            let place = choices.iter().position(|choice| &choice["value"] == answer);
            let place =
                place.with_context(|| format!("`answer` {answer} is none of the choices"))?;
            return Ok(all_at(place, choices.len()));
        }
        match (self.value["type"].as_str(), answer) {
            (Some("predicate"), Value::Bool(is_yes)) => Ok(all_at(usize::from(!is_yes), 2)),
            (Some("predicate"), Value::Number(share)) => {
                let share = share.as_f64().filter(|share| (0.0..=1.0).contains(share));
                let share = share.context("`answer` is no probability")?;
                Ok(vec![share, 1.0 - share])
            }
            (Some("score"), Value::Number(level)) => {
                let count = list("levels")?.len();
                let level = level.as_u64().and_then(|level| usize::try_from(level).ok());
                let level = level.filter(|level| *level < count);
                let level =
                    level.with_context(|| format!("`answer` is no level from 0 to {count} - 1"))?;
                Ok(all_at(level, count))
            }
            _ => bail!("`answer` {answer} is none that its question takes"),
        }
    }
}

fn all_at(place: usize, count: usize) -> Vec<f64> {
    (0..count).map(|index| f64::from(index == place)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARED: &str =
        r#"{"question": {"type": "choice", "choices": [{"value": "a"}, {"value": true}]}}"#;

    #[test]
    fn each_kind_of_answer_has_its_truth() {
        let text = [
            SHARED,
            r#"{"input": "x", "answer": true}"#,
            "",
            r#"{"input": {"n": 1.10}, "answer": 0.25, "question": {"type": "predicate"}}"#,
            r#"{"input": "x", "answer": false, "question": {"type": "predicate"}}"#,
            r#"{"input": "x", "answer": 2, "question": {"type": "score", "levels": [{}, {}, {}]}}"#,
        ];
        let set = parse("some", &text.join("\n")).expect("well formed");
        let truths: Vec<&[f64]> = set.rows.iter().map(|row| row.truth.as_slice()).collect();
        let expected: [&[f64]; 4] = [&[0.0, 1.0], &[0.25, 0.75], &[0.0, 1.0], &[0.0, 0.0, 1.0]];
        assert_eq!(truths, expected);
        let lines: Vec<usize> = set.rows.iter().map(|row| row.line).collect();
        assert_eq!(lines, [2, 4, 5, 6]);
        assert!(set.rows[1].input.contains("1.10"), "{}", set.rows[1].input);
        let reversed = set.rows[0].question.reversed.as_deref().expect("a choice");
        let reversed: Value = serde_json::from_str(reversed).expect("JSON");
        assert_eq!(reversed["choices"][0]["value"], true);
        assert!(set.rows[3].question.reversed.is_none());
    }

    #[test]
    fn a_bad_line_is_named() {
        for (text, fault) in [
            ("", "no row"),
            ("{", "line 1"),
            (r#"{"input": "x", "answer": true}"#, "no `question`"),
            (
                r#"{"input": "x", "question": {"type": "predicate"}}"#,
                "no `answer`",
            ),
            (
                r#"{"answer": true, "question": {"type": "predicate"}}"#,
                "no `input`",
            ),
            (
                r#"{"input": "x", "answer": 1.5, "question": {"type": "predicate"}}"#,
                "no probability",
            ),
            (
                r#"{"input": "x", "answer": 3, "question": {"type": "score", "levels": [{}]}}"#,
                "no level",
            ),
            (
                r#"{"input": "x", "answer": 1, "question": {"type": "noul"}}"#,
                "none of predicate",
            ),
            (r#"{"input": "x", "label": 1}"#, "unknown field `label`"),
        ] {
            let error = format!("{:#}", parse("some", text).expect_err(text));
            assert!(error.contains(fault), "{text}: {error}");
        }
        let text = format!("{SHARED}\n{}", r#"{"input": "x", "answer": "true"}"#);
        let error = format!("{:#}", parse("some", &text).expect_err("another type"));
        assert!(
            error.contains("line 2") && error.contains("none of the choices"),
            "{error}"
        );
    }

    #[test]
    fn a_sample_is_its_seed_s_and_grows() {
        let rows = "{\"input\": \"x\", \"answer\": \"a\"}\n".repeat(100);
        let text = format!("{SHARED}\n{rows}");
        let sample = |limit, seed| {
            let mut set = parse("some", &text).expect("well formed");
            set.sample(limit, seed);
            set.rows.iter().map(|row| row.line).collect::<Vec<usize>>()
        };
        let (ten, twenty) = (sample(10, 1), sample(20, 1));
        assert_eq!((ten.len(), twenty.len()), (10, 20));
        assert!(ten.is_sorted() && ten.iter().all(|line| twenty.contains(line)));
        assert_eq!(ten, sample(10, 1));
        assert_ne!(ten, sample(10, 2));
        assert_eq!(sample(1_000, 1).len(), 100);
    }
}
