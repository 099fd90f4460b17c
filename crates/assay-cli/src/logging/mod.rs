//! Log lines on the error stream. The program's own output stays clean, and a log that nobody reads holds nothing up.

mod queue;

use std::io;
use std::panic::{self, PanicHookInfo};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};

use crate::config::LogFormat;
use crate::interrupt::{Interrupt, Left};
use crate::terminal::Colour;

use queue::LogQueue;

/// Lines that may wait to be read; beyond them lines are dropped.
const MAX_WAITING_LINES: usize = 2_048;
/// How long the end of the process waits for the last lines to be read.
const PATIENCE: Duration = Duration::from_secs(1);

/// Writes out what was logged when it is dropped, or when a signal ends the process.
#[must_use]
pub(crate) struct Log {
    queue: LogQueue,
    _flush_on_signal: Left,
}

/// Log lines of `level` and worse, from now on.
///
/// # Errors
/// The system gives no thread to write them.
pub(crate) fn start(format: LogFormat, level: &str, interrupt: &Interrupt) -> Result<Log> {
    let notice = move |num_dropped| notice(format, num_dropped);
    let queue = LogQueue::new(MAX_WAITING_LINES, io::stderr(), notice)
        .context("cannot start the thread that writes the log")?;
    let lines = queue.clone();
    let builder = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(level))
        .with_ansi(Colour::for_stream(&io::stderr()).is_on())
        .with_writer(move || lines.clone());
    // A second call in one process (tests) keeps the first subscriber.
    let _ = match format {
        LogFormat::Text => builder.with_target(false).try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
    panic::set_hook(Box::new(log_panic));
    let lines = queue.clone();
    let flush = interrupt.on_signal(move || {
        lines.flush(PATIENCE);
        None
    });
    Ok(Log {
        queue,
        _flush_on_signal: flush,
    })
}

impl Drop for Log {
    fn drop(&mut self) {
        self.queue.flush(PATIENCE);
    }
}

/// The line that stands where lines are missing.
fn notice(format: LogFormat, num_dropped: u64) -> String {
    const MESSAGE: &str = "log lines dropped: nobody read them";
    let mut time = String::new();
    // It only adds to a string.
    let _ = SystemTime.format_time(&mut Writer::new(&mut time));
    match format {
        LogFormat::Text => format!("{time}  WARN {MESSAGE} num_dropped={num_dropped}\n"),
        LogFormat::Json => {
            let fields = json!({"message": MESSAGE, "num_dropped": num_dropped});
            let line = json!({"timestamp": time, "level": "WARN", "fields": fields});
            format!("{line}\n")
        }
    }
}

/// What the standard library would write to the error stream itself, and wait for its reader.
fn log_panic(info: &PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let place = info.location().map(ToString::to_string);
    tracing::error!(
        thread = thread.name().unwrap_or("unnamed"),
        place = place.unwrap_or_default(),
        "panicked: {}",
        info.payload_as_str().unwrap_or("for no reason given")
    );
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_notice_has_the_log_s_own_form() {
        let text = notice(LogFormat::Text, 7);
        assert!(
            text.contains(" WARN ") && text.contains("num_dropped=7"),
            "{text}"
        );
        let line: Value = serde_json::from_str(&notice(LogFormat::Json, 7)).unwrap();
        assert_eq!(line["fields"]["num_dropped"], 7);
        assert_eq!(line["level"], "WARN");
    }
}
