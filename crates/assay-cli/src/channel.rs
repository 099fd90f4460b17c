//! The engine's events through a channel, for commands that wait for them in process.

use std::sync::mpsc;

use assay_engine::{Gone, OutputEvent, OutputSink};

/// Sends each event to a receiver on another thread.
pub(crate) struct ChannelSink(mpsc::Sender<OutputEvent>);

impl ChannelSink {
    /// A sink and the events that go into it.
    pub(crate) fn new() -> (Self, mpsc::Receiver<OutputEvent>) {
        let (sender, events) = mpsc::channel();
        (Self(sender), events)
    }
}

impl OutputSink for ChannelSink {
    fn send(&mut self, event: OutputEvent) -> Result<(), Gone> {
        self.0.send(event).map_err(|_| Gone)
    }

    fn is_gone(&self) -> bool {
        // The reader waits for the last event; it never leaves before.
        false
    }
}
