//! The table, and how the file is told from others.

use std::time::Duration;

use rusqlite::Connection;

use super::LedgerError;

/// "ASSY": SQLite keeps it in the file's header for programs that look there.
const APPLICATION_ID: i32 = 0x4153_5359;
const VERSION: i32 = 1;

/// How long another process that writes is waited for.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

const TABLE: &str = "
    CREATE TABLE IF NOT EXISTS receipts (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        created INTEGER NOT NULL,
        reply_id TEXT NOT NULL,
        route TEXT NOT NULL,
        model TEXT NOT NULL,
        system_fingerprint TEXT NOT NULL,
        request_sha256 TEXT NOT NULL,
        receipt_sha256 TEXT NOT NULL,
        receipt TEXT NOT NULL
    ) STRICT;
    CREATE INDEX IF NOT EXISTS receipts_by_reply ON receipts (reply_id);
    CREATE INDEX IF NOT EXISTS receipts_by_hash ON receipts (receipt_sha256);
";

/// Makes a new file a ledger, checks an old one, and sets how it is written: a committed row outlives the process and
/// the machine's power.
pub(super) fn prepare(connection: &Connection) -> Result<(), LedgerError> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    let num_tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if num_tables > 0 {
        check(connection)?;
    }
    let _mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.execute_batch(&format!(
        "BEGIN IMMEDIATE; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION}; {TABLE} COMMIT;"
    ))?;
    Ok(())
}

/// Refuses a file that is no ledger.
pub(super) fn check(connection: &Connection) -> Result<(), LedgerError> {
    let pragma = |name: &str| {
        connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i32>(0))
    };
    if pragma("application_id")? == APPLICATION_ID && pragma("user_version")? == VERSION {
        Ok(())
    } else {
        Err(LedgerError::NotALedger)
    }
}
