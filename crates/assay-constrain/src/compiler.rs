//! Runs the grammar compiler within bounds of size, stack, time and number.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use llguidance::api::{ParserLimits, StopReason};
use llguidance::earley::SlicedBiasComputer;
use llguidance::toktrie::{InferenceCapabilities, TokEnv};
use llguidance::{Matcher, ParserFactory};

use crate::error::ConstraintError;
use crate::source::Source;

/// How long a caller waits. The work itself is bounded by the limits below.
const COMPILE_SECONDS: u64 = 5;
/// Compilations at once, those that nobody waits for any more included.
const COMPILATIONS_MAX: usize = 4;
/// Parser items made for one mask: the readings of the text so far, for every token that might follow. The time
/// of a mask grows faster than their number and everybody's step waits for it, so an ambiguous grammar, which has
/// more of them at every token, ends its reply here. A plain schema needs a few for each member.
const STEP_ITEMS_MAX: usize = 10_000;
/// The compiler recurses along nesting and references; `source` bounds both, this carries them.
const STACK_BYTES: usize = 32 << 20;

pub(crate) struct Compiler {
    parsers: ParserFactory,
    num_running: AtomicUsize,
}

impl Compiler {
    pub(crate) fn new(environment: &TokEnv) -> Result<Self, ConstraintError> {
        let mut parsers = ParserFactory::new(
            environment,
            InferenceCapabilities::default(),
            &SlicedBiasComputer::general_slices(),
        )
        .map_err(|error| ConstraintError::Vocabulary {
            reason: first_line(&error),
        })?;
        parsers.quiet();
        *parsers.limits_mut() = ParserLimits {
            max_lexer_states: 50_000,
            step_max_items: STEP_ITEMS_MAX,
            verbose_errors: false,
            ..ParserLimits::default()
        };
        Ok(Self {
            parsers,
            num_running: AtomicUsize::new(0),
        })
    }

    /// Compiles a checked source to a matcher at its start.
    pub(crate) fn compile(self: &Arc<Self>, source: Source) -> Result<Matcher, ConstraintError> {
        let permit = Permit::take(self).ok_or(ConstraintError::Busy)?;
        let (sender, receiver) = mpsc::sync_channel(1);
        thread::Builder::new()
            .name("assay-constrain".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                let result = permit.compiler.run(source);
                // Before the result leaves: whoever has it may compile again.
                drop(permit);
                // The caller may have given up; then the result is dropped.
                let _ = sender.send(result);
            })
            .map_err(|_| ConstraintError::Busy)?;
        match receiver.recv_timeout(Duration::from_secs(COMPILE_SECONDS)) {
            Ok(result) => result,
            Err(mpsc::RecvTimeoutError::Timeout) => Err(ConstraintError::TooSlow {
                seconds: COMPILE_SECONDS,
            }),
            Err(mpsc::RecvTimeoutError::Disconnected) => Err(ConstraintError::Rejected {
                reason: "the grammar compiler failed on it".to_owned(),
            }),
        }
    }

    fn run(&self, source: Source) -> Result<Matcher, ConstraintError> {
        let parser = self
            .parsers
            .create_parser(source.into_grammar())
            .map_err(|error| classify(&error))?;
        let mut matcher = Matcher::new(Ok(parser));
        // A grammar that no token can begin shows here, not in the middle of a request.
        matcher.compute_mask().map_err(|error| classify(&error))?;
        Ok(matcher)
    }
}

struct Permit {
    compiler: Arc<Compiler>,
}

impl Permit {
    fn take(compiler: &Arc<Compiler>) -> Option<Self> {
        let taken =
            compiler
                .num_running
                .fetch_update(Ordering::AcqRel, Ordering::Acquire, |running| {
                    (running < COMPILATIONS_MAX).then_some(running + 1)
                });
        taken.is_ok().then(|| Self {
            compiler: Arc::clone(compiler),
        })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.compiler.num_running.fetch_sub(1, Ordering::AcqRel);
    }
}

fn classify(error: &impl std::fmt::Display) -> ConstraintError {
    let reason = first_line(error);
    match reason.strip_prefix("Unsatisfiable schema: ") {
        Some(reason) => ConstraintError::Unsatisfiable {
            reason: reason.to_owned(),
        },
        None if reason == StopReason::NoExtensionBias.to_string() => {
            ConstraintError::Unsatisfiable {
                reason: "no token can begin it".to_owned(),
            }
        }
        None if reason.starts_with("oneOf constraints") => ConstraintError::Unsupported {
            keyword: "oneOf".to_owned(),
            path: String::new(),
            reason: "its options are not told apart by type, constant or a required constant \
                     member; `anyOf` can be enforced"
                .to_owned(),
        },
        None => ConstraintError::Rejected { reason },
    }
}

fn first_line(error: &impl std::fmt::Display) -> String {
    let text = error.to_string();
    let line = text.lines().find(|line| !line.trim().is_empty());
    line.unwrap_or("no reason given")
        .chars()
        .take(400)
        .collect()
}
