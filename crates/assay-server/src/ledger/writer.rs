//! The thread that writes.

use rusqlite::{Connection, params};
use tokio::sync::{mpsc, oneshot};

use super::{LedgerEntry, NotWritten};

/// Rows of one transaction at most.
const MAX_BATCH_ROWS: usize = 256;

const INSERT: &str = "INSERT INTO receipts
    (created, reply_id, route, model, system_fingerprint, request_sha256, receipt_sha256, receipt)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

/// A row, and who waits for it.
pub(super) struct Pending {
    pub(super) entry: LedgerEntry,
    pub(super) done: oneshot::Sender<Result<(), NotWritten>>,
}

/// Writes until the last sender has gone.
pub(super) fn run(mut connection: Connection, mut queue: mpsc::Receiver<Pending>) {
    while let Some(first) = queue.blocking_recv() {
        let mut batch = vec![first];
        while batch.len() < MAX_BATCH_ROWS
            && let Ok(next) = queue.try_recv()
        {
            batch.push(next);
        }
        let written = write(&mut connection, &batch);
        if let Err(error) = &written {
            let num_rows = batch.len();
            tracing::error!(%error, num_rows, "the ledger is not written: its answers are refused");
        }
        for pending in batch {
            // Whoever asked may have gone; the row stands.
            let _ = pending
                .done
                .send(written.as_ref().map(|_| ()).map_err(|_| NotWritten));
        }
    }
}

/// All rows or none.
fn write(connection: &mut Connection, batch: &[Pending]) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    {
        let mut insert = transaction.prepare(INSERT)?;
        for Pending { entry, .. } in batch {
            insert.execute(params![
                i64::try_from(entry.created).unwrap_or(i64::MAX),
                entry.reply_id,
                entry.route,
                entry.model,
                entry.system_fingerprint,
                entry.request_sha256,
                entry.receipt_sha256,
                entry.receipt,
            ])?;
        }
    }
    transaction.commit()
}
