//! What was read so far: a JSON line each, so that a run that breaks off goes on, and runs of several processes add up.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::interrupt::{Interrupt, Left};

use super::settings::Setting;

/// One line.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Line {
    /// A question was answered.
    Answer(AnswerLine),
    /// A question was refused.
    Refusal(RefusalLine),
    /// Several were answered against the clock.
    Speed(SpeedLine),
}

/// One answer.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct AnswerLine {
    /// Which question it answers, and how it was read.
    pub(super) of: Of,
    /// Everything that can change a bit of it.
    pub(super) system_fingerprint: String,
    /// The model's name.
    pub(super) model: String,
    /// Of each answer, in the question's order, yes before no.
    pub(super) probabilities: Vec<f64>,
    /// The truth about them.
    pub(super) truth: Vec<f64>,
    /// Probability of any of them.
    pub(super) label_mass: f64,
    /// Of each answer, still in the question's order, with its options in reverse.
    pub(super) reversed: Option<Vec<f64>>,
}

/// Why there is no answer.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct RefusalLine {
    /// Which question it is.
    pub(super) of: Of,
    /// What the server said.
    pub(super) error: String,
}

/// Which row, and how it was read.
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub(super) struct Of {
    /// Name of the set.
    pub(super) set: String,
    /// How the question is read.
    pub(super) setting: Setting,
    /// Line of the set's file.
    pub(super) line: usize,
}

/// How fast a setting is.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct SpeedLine {
    /// Name of the set.
    pub(super) set: String,
    /// How the questions were read.
    pub(super) setting: Setting,
    /// Questions answered.
    pub(super) num_decisions: usize,
    /// From the first request to the last reply.
    pub(super) seconds: f64,
}

/// Lines of earlier runs and of this one.
pub(super) struct Readings {
    out: Option<Kept>,
    pub(super) lines: Vec<Line>,
}

/// A file that a run can go on behind: a signal waits for a line's end.
struct Kept {
    file: File,
    interrupt: Interrupt,
    _next_step: Left,
}

impl Readings {
    /// Begins to write `path`, or goes on behind what it holds.
    ///
    /// # Errors
    /// If it cannot be read or written, or has lines of another kind.
    pub(super) fn open(path: Option<&Path>, resume: bool, interrupt: &Interrupt) -> Result<Self> {
        let Some(path) = path else {
            return Ok(Self {
                out: None,
                lines: Vec::new(),
            });
        };
        let shown = path.display();
        let mut lines = Vec::new();
        if resume && path.exists() {
            lines = read(path)?;
            // A line that was not finished goes.
            interrupt
                .whole(|| write_whole(path, &lines))
                .with_context(|| format!("cannot write {shown}"))?;
        }
        let mut options = OpenOptions::new();
        let options = options.create(true).write(true);
        let options = options.append(resume).truncate(!resume);
        let file = options
            .open(path)
            .with_context(|| format!("cannot write {shown}"))?;
        let next_step = format!("what was read is in {shown}; --resume goes on behind it");
        let out = Some(Kept {
            file,
            interrupt: interrupt.clone(),
            _next_step: interrupt.on_signal(move || Some(next_step.clone())),
        });
        Ok(Self { out, lines })
    }

    /// The lines of several files.
    ///
    /// # Errors
    /// If one cannot be read.
    pub(super) fn of_files(paths: &[PathBuf]) -> Result<Self> {
        let mut lines = Vec::new();
        for path in paths {
            lines.extend(read(path)?);
        }
        Ok(Self { out: None, lines })
    }

    /// Keeps a line, and writes it whole.
    ///
    /// # Errors
    /// The file's.
    pub(super) fn add(&mut self, line: Line) -> Result<()> {
        if let Some(Kept {
            file, interrupt, ..
        }) = &mut self.out
        {
            interrupt
                .whole(|| write_line(file, &line))
                .context("cannot write what was read")?;
        }
        self.lines.push(line);
        Ok(())
    }

    /// Questions that need not be asked again.
    pub(super) fn done(&self) -> BTreeSet<Of> {
        let of = |line: &Line| match line {
            Line::Answer(answer) => Some(answer.of.clone()),
            Line::Refusal(refusal) => Some(refusal.of.clone()),
            Line::Speed(_) => None,
        };
        self.lines.iter().filter_map(of).collect()
    }

    /// Questions that were refused, and all that were asked.
    pub(super) fn num_refused(&self) -> (usize, usize) {
        let count = |is_counted: fn(&Line) -> bool| {
            let counted = self.lines.iter().filter(|line| is_counted(line));
            counted.count()
        };
        let num_refused = count(|line| matches!(line, Line::Refusal(_)));
        let num_answered = count(|line| matches!(line, Line::Answer(_)));
        (num_refused, num_refused + num_answered)
    }

    /// Whether this setting's speed is known.
    pub(super) fn is_timed(&self, set: &str, setting: Setting) -> bool {
        self.lines.iter().any(|line| {
            matches!(line, Line::Speed(speed) if speed.set == set && speed.setting == setting)
        })
    }
}

/// The whole lines of a file; one at its end may be unfinished.
fn read(path: &Path) -> Result<Vec<Line>> {
    let shown = path.display();
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    let mut lines = Vec::new();
    for (index, line) in text.split_inclusive('\n').enumerate() {
        match serde_json::from_str(line) {
            Ok(line) => lines.push(line),
            Err(_) if !line.ends_with('\n') => break,
            Err(error) => bail!("{shown}, line {}: {error}", index + 1),
        }
    }
    Ok(lines)
}

fn write_whole(path: &Path, lines: &[Line]) -> Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let mut file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
    for line in lines {
        write_line(&mut file, line)?;
    }
    file.persist(path)?;
    Ok(())
}

fn write_line(out: &mut impl Write, line: &Line) -> Result<()> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    Ok(out.write_all(text.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use super::super::settings::{Debias, Readout};
    use super::*;

    #[test]
    fn a_run_goes_on_behind_its_last_whole_line() {
        let (folder, deaf) = (tempfile::tempdir().expect("a folder"), Interrupt::default());
        let path = folder.path().join("readings.jsonl");
        let setting = Setting {
            readout: Readout::Code,
            debias: Debias::Both,
            rotations: 3,
        };
        let of = |line| Of {
            set: "s".to_owned(),
            setting,
            line,
        };
        let refusal = |line| {
            Line::Refusal(RefusalLine {
                of: of(line),
                error: "why".to_owned(),
            })
        };
        let mut readings = Readings::open(Some(&path), false, &deaf).expect("opened");
        readings.add(refusal(7)).expect("written");
        let whole = fs::read_to_string(&path).expect("readable");
        fs::write(&path, format!("{whole}{{\"speed\":")).expect("written");
        let mut readings = Readings::open(Some(&path), true, &deaf).expect("opened");
        assert_eq!(readings.done(), BTreeSet::from([of(7)]));
        let speed = Line::Speed(SpeedLine {
            set: "s".to_owned(),
            setting,
            num_decisions: 1,
            seconds: 0.1,
        });
        readings.add(speed.clone()).expect("written");
        assert!(readings.is_timed("s", setting) && !readings.is_timed("t", setting));
        let read = Readings::of_files(std::slice::from_ref(&path)).expect("readable");
        assert_eq!(read.lines, [refusal(7), speed]);
        fs::write(&path, "{}\n{\"speed\":").expect("written");
        assert!(
            Readings::open(Some(&path), true, &deaf).is_err(),
            "another kind of file"
        );
    }
}
