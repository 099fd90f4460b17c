//! Answers as JSON lines, one a row, each written whole before the next: a run that breaks off goes on behind them.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

use crate::decision_client::Answer;
use crate::interrupt::{Interrupt, Left};
use crate::terminal::{self, Out};

/// What names one reply among others and tells nothing of the row.
const OF_THE_REPLY: [&str; 5] = ["created", "id", "object", "usage", "x_id"];

/// Where answers go.
pub(super) struct Answers {
    out: Sink,
    num_done: usize,
}

enum Sink {
    /// Whoever reads it, as it comes.
    Stdout(Out),
    /// A signal waits for a line's end.
    File {
        file: File,
        interrupt: Interrupt,
        _next_step: Left,
    },
}

impl Answers {
    pub(super) fn open(path: Option<&Path>, resume: bool, interrupt: &Interrupt) -> Result<Self> {
        let Some(path) = path else {
            return Ok(Self {
                out: Sink::Stdout(terminal::stdout()),
                num_done: 0,
            });
        };
        let shown = path.display();
        let mut options = OpenOptions::new();
        let options = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(!resume);
        let mut file = options
            .open(path)
            .with_context(|| format!("cannot write {shown}"))?;
        let num_done = if resume {
            keep_whole_lines(&mut file).with_context(|| format!("--resume with {shown}"))?
        } else {
            0
        };
        let next_step = format!("the answers so far are in {shown}; --resume goes on behind them");
        let out = Sink::File {
            file,
            interrupt: interrupt.clone(),
            _next_step: interrupt.on_signal(move || Some(next_step.clone())),
        };
        Ok(Self { out, num_done })
    }

    /// Rows that were answered before.
    pub(super) fn num_done(&self) -> usize {
        self.num_done
    }

    pub(super) fn write(&mut self, number: usize, answer: &Answer) -> Result<()> {
        let mut line = Map::new();
        line.insert("row".to_owned(), number.into());
        match answer {
            Answer::Error(error) => {
                line.insert("error".to_owned(), error.clone());
            }
            Answer::Reply(members) => {
                let own = members
                    .iter()
                    .filter(|(name, _)| !OF_THE_REPLY.contains(&name.as_str()));
                line.extend(own.map(|(name, value)| (name.clone(), value.clone())));
            }
        }
        let mut line = Value::Object(line).to_string();
        line.push('\n');
        let written = match &mut self.out {
            Sink::Stdout(out) => out.write_all(line.as_bytes()).and_then(|()| out.flush()),
            Sink::File {
                file, interrupt, ..
            } => interrupt.whole(|| file.write_all(line.as_bytes())),
        };
        written.context("cannot write an answer")
    }
}

/// Cuts off a line that was not finished and stands at the end; the number of whole ones.
fn keep_whole_lines(file: &mut File) -> Result<usize> {
    let mut reader = BufReader::new(&mut *file);
    let (mut end, mut num_lines) = (0, 0);
    let mut line = Vec::new();
    loop {
        line.clear();
        let num_bytes = reader.read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') {
            break;
        }
        num_lines += 1;
        let answered: Option<Value> = serde_json::from_slice(&line).ok();
        let row = answered.and_then(|answered| answered.get("row")?.as_u64());
        if row != u64::try_from(num_lines).ok() {
            bail!("line {num_lines} is not the answer of row {num_lines}");
        }
        end += u64::try_from(num_bytes)?;
    }
    file.set_len(end)?;
    file.seek(SeekFrom::Start(end))?;
    Ok(num_lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_goes_on_behind_its_last_whole_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("answers.jsonl");
        std::fs::write(
            &path,
            "{\"row\":1,\"answer\":1}\n{\"row\":2,\"error\":{}}\n{\"row\":3,\"ans",
        )
        .expect("written");
        let mut answers = Answers::open(Some(&path), true, &Interrupt::default()).expect("opened");
        assert_eq!(answers.num_done(), 2);
        let reply = Map::from_iter([
            ("id".to_owned(), "x".into()),
            ("answer".to_owned(), 7.into()),
        ]);
        answers.write(3, &Answer::Reply(reply)).expect("written");
        let text = std::fs::read_to_string(&path).expect("readable");
        assert_eq!(
            text,
            "{\"row\":1,\"answer\":1}\n{\"row\":2,\"error\":{}}\n{\"row\":3,\"answer\":7}\n"
        );
        std::fs::write(&path, "{\"row\":2}\n").expect("written");
        assert!(
            Answers::open(Some(&path), true, &Interrupt::default()).is_err(),
            "row 1 is missing"
        );
        assert_eq!(
            Answers::open(Some(&path), false, &Interrupt::default())
                .expect("opened")
                .num_done(),
            0
        );
        assert_eq!(std::fs::read_to_string(&path).expect("readable"), "");
    }
}
