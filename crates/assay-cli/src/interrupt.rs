//! Ctrl-C and SIGTERM: the process ends at once, and nothing stays half written.
//!
//! What must be whole is written within [`Interrupt::whole`]; what must be undone, or said, is left with
//! [`Interrupt::on_signal`]. So no loop has to ask whether it should go on. A second signal waits for nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{process, thread};

use anyhow::{Context, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::terminal::{self, say};

/// Which signal ended the process. Its status is what a shell reports of a program that the signal kills.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Interrupted {
    /// Ctrl-C.
    #[error("interrupted")]
    BySigint,
    /// A manager of services, mostly.
    #[error("terminated")]
    BySigterm,
}

impl Interrupted {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::BySigint => 130,
            Self::BySigterm => 143,
        }
    }
}

/// Acts on a signal in place of the process's end.
type Successor = Box<dyn Fn(Interrupted) + Send>;

/// Done before the process ends; may say what to do next.
type Parting = Box<dyn FnMut() -> Option<String> + Send>;

/// Hears signals for the process. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Interrupt(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Held while something is written that must be whole.
    writing: Mutex<()>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    partings: BTreeMap<u64, Parting>,
    next_number: u64,
    successor: Option<Successor>,
}

/// Forgets a parting when it is dropped.
#[must_use]
pub(crate) struct Left {
    shared: Arc<Shared>,
    number: u64,
}

impl Interrupt {
    /// Hears signals from now on.
    ///
    /// # Errors
    /// The system lets nobody listen.
    pub(crate) fn listen() -> Result<Self> {
        let interrupt = Self::default();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .context("cannot listen for signals")?;
        let signals = {
            let _entered = runtime.enter();
            (
                signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?,
                signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?,
            )
        };
        let heard = interrupt.clone();
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || runtime.block_on(heard.hear(signals)))
            .context("cannot start the thread for signals")?;
        Ok(interrupt)
    }

    async fn hear(&self, (mut interrupts, mut terminations): (Signal, Signal)) {
        let mut is_ending = false;
        loop {
            let signal = tokio::select! {
                _ = interrupts.recv() => Interrupted::BySigint,
                _ = terminations.recv() => Interrupted::BySigterm,
            };
            if let Some(successor) = &self.state().successor {
                successor(signal);
                continue;
            }
            let ending = self.clone();
            let end = move || ending.end(signal);
            if is_ending || thread::Builder::new().spawn(end).is_err() {
                process::exit(signal.code().into());
            }
            is_ending = true;
        }
    }

    fn end(&self, signal: Interrupted) {
        let _whole = lock(&self.0.writing);
        terminal::restore();
        let mut words = signal.to_string();
        let partings = std::mem::take(&mut self.state().partings);
        for mut parting in partings.into_values() {
            if let Some(next_step) = parting() {
                words = format!("{words}; {next_step}");
            }
        }
        say(format_args!("{words}"));
        process::exit(signal.code().into());
    }

    /// Does `work` in one piece: a signal waits for its end.
    pub(crate) fn whole<T>(&self, work: impl FnOnce() -> T) -> T {
        let _whole = lock(&self.0.writing);
        work()
    }

    /// Has `parting` done when a signal ends the process, unless what is returned was dropped before.
    pub(crate) fn on_signal(
        &self,
        parting: impl FnMut() -> Option<String> + Send + 'static,
    ) -> Left {
        let mut state = self.state();
        let number = state.next_number;
        state.next_number += 1;
        state.partings.insert(number, Box::new(parting));
        Left {
            shared: Arc::clone(&self.0),
            number,
        }
    }

    /// From now on `successor` acts on signals. Each is heard here and by nobody else, so none is lost in between.
    pub(crate) fn hand_over(&self, successor: impl Fn(Interrupted) + Send + 'static) {
        self.state().successor = Some(Box::new(successor));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0.state)
    }
}

impl Drop for Left {
    fn drop(&mut self) {
        lock(&self.shared.state).partings.remove(&self.number);
    }
}

/// A thread that panicked has left nothing here that another could not use.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
