//! Log lines on their way to the error stream: whoever logs never waits for whoever reads.
//!
//! Lines wait in a bounded queue for a thread that writes them. When it is full they are dropped, and counted; the
//! count is a line of its own once there is room again.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Pause between attempts to put something into a full queue.
const PAUSE: Duration = Duration::from_millis(5);

/// Where log lines go in; each write is one line. Clones are the same queue.
#[derive(Clone, Debug)]
pub(super) struct LogQueue {
    sender: SyncSender<Message>,
    num_dropped: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Message {
    Line {
        text: Vec<u8>,
        /// Lines before it that found no room.
        num_dropped: u64,
    },
    /// Answered once everything before it is written.
    Flush(SyncSender<()>),
}

impl LogQueue {
    /// A queue of `capacity` lines that `out` gets, with a line of `notice` where some are missing.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(super) fn new(
        capacity: usize,
        out: impl Write + Send + 'static,
        notice: impl Fn(u64) -> String + Send + 'static,
    ) -> io::Result<Self> {
        let (sender, receiver) = sync_channel(capacity);
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || write_all(&receiver, out, notice))?;
        Ok(Self {
            sender,
            num_dropped: Arc::default(),
        })
    }

    /// Waits until all that was logged before is written, at most for `patience`; whether it is.
    pub(super) fn flush(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        let (done, is_done) = sync_channel(1);
        let mut message = Message::Flush(done);
        while let Err(TrySendError::Full(back)) = self.sender.try_send(message) {
            if Instant::now() >= deadline {
                return false;
            }
            message = back;
            thread::sleep(PAUSE);
        }
        let rest = deadline.saturating_duration_since(Instant::now());
        is_done.recv_timeout(rest).is_ok()
    }
}

impl Write for LogQueue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let num_dropped = self.num_dropped.swap(0, Ordering::Relaxed);
        let message = Message::Line {
            text: line.to_vec(),
            num_dropped,
        };
        if self.sender.try_send(message).is_err() {
            self.num_dropped
                .fetch_add(num_dropped + 1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes until the last clone of the queue is gone. A stream that fails loses lines and is tried again.
fn write_all(receiver: &Receiver<Message>, mut out: impl Write, notice: impl Fn(u64) -> String) {
    for message in receiver {
        match message {
            Message::Line { text, num_dropped } => {
                if num_dropped > 0 {
                    let _ = out.write_all(notice(num_dropped).as_bytes());
                }
                let _ = out.write_all(&text);
            }
            Message::Flush(done) => {
                let _ = out.flush();
                let _ = done.try_send(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, mpsc};

    use super::*;

    /// Writes one line for each permission that it gets.
    struct Slow {
        permission: Receiver<()>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Without a permission ever coming, the reader is gone: go on.
            let _ = self.permission.recv();
            self.written.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_queue_drops_lines_counts_them_and_never_waits() {
        let (permit, permission) = mpsc::channel();
        let written = Arc::new(Mutex::new(Vec::new()));
        let out = Slow {
            permission,
            written: Arc::clone(&written),
        };
        let notice = |num_dropped| format!("{num_dropped} missing\n");
        let mut queue = LogQueue::new(2, out, notice).unwrap();
        let patience = Duration::from_secs(60);
        // The first is taken out and waits to be written, two more fill the queue.
        queue.write_all(b"1\n").unwrap();
        permit.send(()).unwrap();
        assert!(queue.flush(patience));
        for number in 2..=9 {
            let line = format!("{number}\n");
            queue.write_all(line.as_bytes()).unwrap();
        }
        assert!(!queue.flush(Duration::from_millis(20)), "nobody reads");
        drop(permit);
        assert!(queue.flush(patience));
        queue.write_all(b"last\n").unwrap();
        assert!(queue.flush(patience));
        let text = String::from_utf8(written.lock().unwrap().clone()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let kept = lines.iter().filter(|line| line.parse::<u32>().is_ok());
        let num_kept = kept.count();
        // One more or less, as the writer was faster or slower to take the second out.
        assert!((3..=4).contains(&num_kept), "{lines:?}");
        let missing = format!("{} missing", 9 - num_kept);
        assert_eq!(lines[num_kept..], [missing.as_str(), "last"], "{lines:?}");
    }

    #[test]
    fn a_closed_stream_is_no_fault() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }

            fn flush(&mut self) -> io::Result<()> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
        }
        let mut queue = LogQueue::new(2, Closed, |_| String::new()).unwrap();
        queue.write_all(b"1\n").unwrap();
        assert!(queue.flush(Duration::from_secs(60)));
    }
}
