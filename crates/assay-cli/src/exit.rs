//! What the process ends with: one list for all commands. `docs/cli.md` has it for people.

use std::process::ExitCode;

use crate::bench::MachineBusy;
use crate::config::BadSetting;
use crate::decide::BadRows;
use crate::interrupt::Interrupted;
use crate::replay::{NotIdentical, NotReplayed};
use crate::terminal::ReaderLeft;

/// Stands below `assay --help`.
pub(crate) const HELP: &str = "\
Exit status:
    0  done; also when the reader of the output has left
    1  failed; of replay: not identical; of doctor: something must be mended
    2  wrong usage: a flag, a variable or a key of the configuration file
    3  bench: the machine was busy
    4  decide, eval: some rows have no answer
    5  replay: not replayed, so nothing is said of the receipt
  130  ended by Ctrl-C (SIGINT); 143 by SIGTERM, except serve, which drains and ends with 0";

/// What the process ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitStatus {
    /// What was asked is done.
    Done,
    /// It is not.
    Failed,
    /// It was asked wrongly; nothing was begun.
    WrongUsage,
    /// A measurement that the machine was too busy for.
    Busy,
    /// Some rows were answered and others not.
    BadRows,
    /// A receipt could not be computed again.
    NotReplayed,
    /// A signal of this status ended it.
    Signal(Interrupted),
}

impl ExitStatus {
    /// The status that says what `error` says.
    pub(crate) fn of(error: &anyhow::Error) -> Self {
        if ReaderLeft::is_behind(error) {
            Self::Done
        } else if let Some(&signal) = error.downcast_ref::<Interrupted>() {
            Self::Signal(signal)
        } else if error.is::<BadSetting>() {
            Self::WrongUsage
        } else if error.is::<NotReplayed>() {
            Self::NotReplayed
        } else if error.is::<MachineBusy>() {
            Self::Busy
        } else if error.is::<BadRows>() {
            Self::BadRows
        } else {
            Self::Failed
        }
    }

    /// Whether `error` is worth a line: what differs in a receipt is printed already, and a signal needs no word.
    pub(crate) fn is_said(self, error: &anyhow::Error) -> bool {
        !matches!(self, Self::Done | Self::Signal(_)) && !error.is::<NotIdentical>()
    }

    fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::WrongUsage => 2,
            Self::Busy => 3,
            Self::BadRows => 4,
            Self::NotReplayed => 5,
            Self::Signal(signal) => signal.code(),
        }
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> Self {
        Self::from(status.code())
    }
}

#[cfg(test)]
mod tests {
    use anyhow::{Context, Error, anyhow};

    use super::*;

    #[test]
    fn an_error_keeps_its_status_behind_any_words() {
        let cases: [(Error, ExitStatus); 6] = [
            (anyhow!("no file"), ExitStatus::Failed),
            (
                BadSetting::from(anyhow!("--kv q8")).into(),
                ExitStatus::WrongUsage,
            ),
            // A wrong setting of `replay` is a wrong setting first.
            (
                Error::from(BadSetting::from(anyhow!("--kv q8"))).context(NotReplayed),
                ExitStatus::WrongUsage,
            ),
            (
                anyhow!("gone").context(NotReplayed),
                ExitStatus::NotReplayed,
            ),
            (NotIdentical.into(), ExitStatus::Failed),
            (
                Interrupted::BySigint.into(),
                ExitStatus::Signal(Interrupted::BySigint),
            ),
        ];
        for (error, status) in cases {
            let shown = format!("{error:#}");
            assert_eq!(ExitStatus::of(&error), status, "{shown}");
            let wrapped = Err::<(), _>(error).context("on the way").unwrap_err();
            assert_eq!(ExitStatus::of(&wrapped), status, "{shown}");
            let listed = format!("\n{:>5}  ", status.code());
            assert!(HELP.contains(&listed), "{status:?} is not in the help");
        }
    }
}
