//! The way of the engine's events to who replays.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use assay_engine::decision::{DecisionReading, DecisionSink};
use assay_engine::{Gone, OutputEvent, OutputSink, RequestError, TokenOutput};

/// What is heard of a request.
pub(super) enum Heard {
    Drawn {
        choice_index: u32,
        output: TokenOutput,
    },
    Event(OutputEvent),
}

/// Engine side.
pub(super) struct Sink<T> {
    sender: mpsc::Sender<T>,
    is_gone: Arc<AtomicBool>,
}

/// Who replays. Dropped, it has gone: the engine does no more for it.
pub(super) struct Listener<T> {
    receiver: mpsc::Receiver<T>,
    is_gone: Arc<AtomicBool>,
}

pub(super) fn channel<T>() -> (Sink<T>, Listener<T>) {
    let (sender, receiver) = mpsc::channel();
    let is_gone = Arc::new(AtomicBool::new(false));
    let sink = Sink {
        sender,
        is_gone: Arc::clone(&is_gone),
    };
    (sink, Listener { receiver, is_gone })
}

impl<T> Listener<T> {
    /// # Errors
    /// The engine ended.
    pub(super) fn next(&self) -> Result<T, RequestError> {
        self.receiver
            .recv()
            .map_err(|_| RequestError::EngineStopped)
    }
}

impl<T> Drop for Listener<T> {
    fn drop(&mut self) {
        self.is_gone.store(true, Ordering::Relaxed);
    }
}

impl OutputSink for Sink<Heard> {
    fn send(&mut self, event: OutputEvent) -> Result<(), Gone> {
        self.sender.send(Heard::Event(event)).map_err(|_| Gone)
    }

    fn drawn(&mut self, choice_index: u32, output: &TokenOutput) {
        // Nobody listening shows at the next event.
        let _ = self.sender.send(Heard::Drawn {
            choice_index,
            output: output.clone(),
        });
    }

    fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }
}

impl DecisionSink for Sink<Result<DecisionReading, RequestError>> {
    fn send(&mut self, outcome: Result<DecisionReading, RequestError>) {
        // Nobody listens any more, and nothing is left to free.
        let _ = self.sender.send(outcome);
    }

    fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }
}
