//! The ledger: one SQLite file with a row for each decision or scored reply, written before the answer leaves.
//!
//! One thread writes. All that waits by the time it is free is one transaction and one sync to disk, so a busy server
//! pays for few of them; nobody is answered before the sync. `reader.rs` is for whoever asks later.

mod reader;
mod schema;
mod writer;

pub use reader::{LedgerReader, LedgerRow, RowName};

use std::fmt;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};

use writer::Pending;

/// Rows that wait to be written; a further one waits for a place, and its answer with it.
const QUEUE_ROWS: usize = 1_024;

/// Why a file is not used as a ledger.
#[derive(Debug, Error)]
pub enum LedgerError {
    /// SQLite's word.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// A database of something else, or of a later version.
    #[error("it is a database, but no ledger of this program's version")]
    NotALedger,
    /// The operating system gave no thread.
    #[error("its thread did not start")]
    Thread(#[from] std::io::Error),
}

/// One row to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerEntry {
    /// Name of the reply.
    pub reply_id: String,
    /// Route that was asked.
    pub route: String,
    /// Seconds since 1970.
    pub created: u64,
    /// The model that answered.
    pub model: String,
    /// Who answered, in one short hash.
    pub system_fingerprint: String,
    /// Of the request's body.
    pub request_sha256: String,
    /// Of the receipt.
    pub receipt_sha256: String,
    /// The sealed receipt, one JSON object.
    pub receipt: String,
}

/// A row that was not written: its answer must not leave. The log says why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the ledger could not be written")]
pub struct NotWritten;

/// A ledger that is open for writing; clones write to the same.
#[derive(Clone)]
pub struct Ledger {
    queue: mpsc::Sender<Pending>,
}

impl fmt::Debug for Ledger {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Ledger").finish_non_exhaustive()
    }
}

impl Ledger {
    /// Opens the file at `path`, or makes it, and starts the thread that writes to it.
    ///
    /// # Errors
    /// [`LedgerError`]: it cannot be written, or is none.
    pub fn open(path: &Path) -> Result<Self, LedgerError> {
        let connection = Connection::open_with_flags(
            path,
            OpenFlags::SQLITE_OPEN_READ_WRITE
                | OpenFlags::SQLITE_OPEN_CREATE
                | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        )?;
        schema::prepare(&connection)?;
        let (queue, pending) = mpsc::channel(QUEUE_ROWS);
        std::thread::Builder::new()
            .name("assay-ledger".to_owned())
            .spawn(move || writer::run(connection, pending))?;
        Ok(Self { queue })
    }

    /// Adds a row; it is on disk when this returns.
    ///
    /// # Errors
    /// [`NotWritten`].
    pub async fn append(&self, entry: LedgerEntry) -> Result<(), NotWritten> {
        let (done, outcome) = oneshot::channel();
        let sent = self.queue.send(Pending { entry, done }).await;
        sent.map_err(|_| NotWritten)?;
        outcome.await.unwrap_or(Err(NotWritten))
    }
}
