//! What the program prints and says: output on the standard stream, words to people on the error stream.
//!
//! Neither can stop it: a reader of the output that left ends it quietly, and nobody has to read what it says.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::config;

/// How long a word waits for whoever reads the error stream.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether to colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    /// Escape sequences for a terminal.
    On,
    /// Plain text.
    Off,
}

impl Colour {
    /// On for a terminal that nobody asked to stay plain, off for a file or a pipe.
    pub(crate) fn for_stream(stream: &impl IsTerminal) -> Self {
        if stream.is_terminal() && config::allows_colour() {
            Self::On
        } else {
            Self::Off
        }
    }

    pub(crate) fn for_stdout() -> Self {
        Self::for_stream(&io::stdout())
    }

    pub(crate) fn is_on(self) -> bool {
        self == Self::On
    }
}

/// The standard output. Fails with [`ReaderLeft`] once nobody reads it, as behind `| head`.
pub(crate) struct Out<W = io::Stdout>(W);

/// Whoever read the output has left: there is nothing more to do, and nothing wrong.
#[derive(Debug, thiserror::Error)]
#[error("nobody reads the output")]
pub(crate) struct ReaderLeft;

/// The standard output of this process.
pub(crate) fn stdout() -> Out {
    Out(io::stdout())
}

impl<W: Write> Write for Out<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(named)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(named)
    }
}

/// Tells the output's broken pipe from a broken connection, which is a fault.
fn named(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::BrokenPipe => io::Error::new(io::ErrorKind::BrokenPipe, ReaderLeft),
        _ => error,
    }
}

impl ReaderLeft {
    /// Whether it is what `error` comes from.
    pub(crate) fn is_behind(error: &anyhow::Error) -> bool {
        let mut causes = error.chain().filter_map(|cause| cause.downcast_ref());
        causes.any(|cause: &io::Error| cause.get_ref().is_some_and(|inner| inner.is::<Self>()))
    }
}

/// Says a line on the error stream. A stream that is closed loses it; one that nobody reads costs a second and loses it.
pub(crate) fn say(line: fmt::Arguments<'_>) {
    let line = format!("{line}\n");
    say_raw(line.into_bytes());
}

fn say_raw(bytes: Vec<u8>) {
    let (done, is_done) = mpsc::channel();
    let writing = thread::Builder::new()
        .name("say".to_owned())
        .spawn(move || {
            let _ = io::stderr().write_all(&bytes);
            let _ = done.send(());
        });
    if writing.is_ok() {
        let _ = is_done.recv_timeout(PATIENCE);
    }
}

/// Clears the line of a progress bar and ends a colour that work broke off in the middle of.
pub(crate) fn restore() {
    if io::stderr().is_terminal() && !config::is_dumb_terminal() {
        say_raw(b"\r\x1b[K".to_vec());
    }
    if Colour::for_stdout().is_on() {
        let _ = io::stdout().write_all(b"\x1b[0m");
        let _ = io::stdout().flush();
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    struct Broken;

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_left_is_told_from_a_connection_that_broke() {
        let left = Out(Broken).write_all(b"x").context("cannot print");
        assert!(ReaderLeft::is_behind(&left.unwrap_err()));
        let broke = Broken.write_all(b"x").context("cannot send");
        assert!(!ReaderLeft::is_behind(&broke.unwrap_err()));
    }
}
