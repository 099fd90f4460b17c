//! `assay doctor`: whether `assay serve` with the same settings would work well here, and what to do where not.
//!
//! It looks and changes nothing: a model that is not there is not fetched, and no port stays taken.

mod machine;
mod model;
mod place;

use std::fmt;
use std::io::Write;

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use crate::config::ServeArgs;
use crate::terminal::{self, Colour};
use crate::version::Version;

/// What to look at.
#[derive(Args, Clone, Debug)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    serve: ServeArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Something must be mended before it works.
#[derive(Debug, thiserror::Error)]
#[error("{num_failed} of {num_checks} checks failed; each line says what to do")]
pub(crate) struct Unfit {
    num_failed: usize,
    num_checks: usize,
}

/// How well one thing stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Ok,
    /// It works, and not as well as it could.
    Warn,
    /// It does not work.
    Fail,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Check {
    name: &'static str,
    level: Level,
    found: String,
    /// What to do.
    advice: Option<String>,
}

impl Check {
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self {
            name,
            level: Level::Ok,
            found: found.into(),
            advice: None,
        }
    }

    fn warn(name: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            level: Level::Warn,
            advice: Some(advice.into()),
            ..Self::ok(name, found)
        }
    }

    fn fail(name: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            level: Level::Fail,
            advice: Some(advice.into()),
            ..Self::ok(name, found)
        }
    }

    /// The same with something that may be done and need not.
    fn with_advice(self, advice: impl Into<String>) -> Self {
        Self {
            advice: Some(advice.into()),
            ..self
        }
    }
}

#[derive(Debug, Serialize)]
struct Report {
    /// The worst of the checks.
    level: Level,
    version: Version,
    checks: Vec<Check>,
}

/// Looks at everything and prints a line for each.
///
/// # Errors
/// [`Unfit`] where something must be mended.
pub(crate) fn run(args: DoctorArgs) -> Result<()> {
    let version = Version::read();
    let mut checks = vec![build(&version)];
    match args.serve.resolve() {
        Ok(config) => {
            checks.push(place::settings(&config));
            checks.extend(machine::checks(&config.model));
            checks.extend(model::checks(&config));
            checks.extend(place::checks(&config));
        }
        Err(error) => {
            let error = anyhow::Error::from(error);
            checks.push(Check::fail(
                "settings",
                format!("{error:#}"),
                "mend this first: nothing else can be looked at without settings",
            ));
        }
    }
    let worst = |level| checks.iter().any(|check: &Check| check.level == level);
    let level = match () {
        () if worst(Level::Fail) => Level::Fail,
        () if worst(Level::Warn) => Level::Warn,
        () => Level::Ok,
    };
    let report = Report {
        level,
        version,
        checks,
    };
    let mut out = terminal::stdout();
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&report)?)?;
    } else {
        report.write_text(&mut out, Colour::for_stdout())?;
    }
    let failed = report
        .checks
        .iter()
        .filter(|check| check.level == Level::Fail);
    match failed.count() {
        0 => Ok(()),
        num_failed => Err(Unfit {
            num_failed,
            num_checks: report.checks.len(),
        }
        .into()),
    }
}

fn build(version: &Version) -> Check {
    let found = version.build();
    if version.profile == "release" {
        Check::ok("build", found)
    } else {
        let advice = "built without optimisation, so several times slower: `cargo build --release`";
        Check::warn("build", found, advice)
    }
}

impl Report {
    fn write_text(&self, out: &mut impl Write, colour: Colour) -> std::io::Result<()> {
        for check in &self.checks {
            let level = match check.level {
                Level::Ok => colour.paint("ok  ", 1.0),
                Level::Warn => colour.paint("warn", 0.3),
                Level::Fail => colour.paint("FAIL", 0.0),
            };
            writeln!(out, "{level}  {:<11} {}", check.name, check.found)?;
            if let Some(advice) = &check.advice {
                writeln!(out, "{:17} -> {advice}", "")?;
            }
        }
        Ok(())
    }
}

/// Bytes for people.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0 as f64;
        match self.0 {
            0x4000_0000.. => write!(formatter, "{:.1} GiB", bytes / (1u64 << 30) as f64),
            _ => write!(formatter, "{:.0} MiB", bytes / (1u64 << 20) as f64),
        }
    }
}
