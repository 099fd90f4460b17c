//! A ledger, read: rows by number, by reply, by receipt.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, params};

use super::{LedgerEntry, LedgerError, schema};

const COLUMNS: &str =
    "id, created, reply_id, route, model, system_fingerprint, request_sha256, receipt_sha256";

/// A ledger that is open for reading; a server may write to it meanwhile.
#[derive(Debug)]
pub struct LedgerReader {
    connection: Connection,
}

/// A row as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerRow {
    /// Its number, ascending as rows were written.
    pub id: i64,
    /// Its columns; `receipt` is empty in a list.
    pub entry: LedgerEntry,
}

/// What a row is asked for by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowName {
    /// Its number.
    Number(i64),
    /// Name of the reply, or hash of the receipt.
    Text(String),
}

impl LedgerReader {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// [`LedgerError`]: it cannot be read, or is none.
    pub fn open(path: &Path) -> Result<Self, LedgerError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        schema::check(&connection)?;
        Ok(Self { connection })
    }

    /// Up to `limit` rows, the latest first, without their receipts.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn latest(&self, limit: u32) -> Result<Vec<LedgerRow>, LedgerError> {
        let query = format!("SELECT {COLUMNS}, '' FROM receipts ORDER BY id DESC LIMIT ?1");
        let mut statement = self.connection.prepare(&query)?;
        let rows = statement.query_map([limit], row)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The first row behind number `after`, whole; `None` at the end.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn next(&self, after: i64) -> Result<Option<LedgerRow>, LedgerError> {
        let query =
            format!("SELECT {COLUMNS}, receipt FROM receipts WHERE id > ?1 ORDER BY id LIMIT 1");
        Ok(self.connection.query_row(&query, [after], row).optional()?)
    }

    /// The row of that name, whole; of several the latest.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn find(&self, name: &RowName) -> Result<Option<LedgerRow>, LedgerError> {
        let found = match name {
            RowName::Number(id) => {
                let query = format!("SELECT {COLUMNS}, receipt FROM receipts WHERE id = ?1");
                self.connection.query_row(&query, params![id], row)
            }
            RowName::Text(text) => {
                let query = format!(
                    "SELECT {COLUMNS}, receipt FROM receipts WHERE reply_id = ?1 OR receipt_sha256 = ?1 \
                     ORDER BY id DESC LIMIT 1"
                );
                self.connection.query_row(&query, params![text], row)
            }
        };
        Ok(found.optional()?)
    }
}

fn row(row: &Row<'_>) -> rusqlite::Result<LedgerRow> {
    let created: i64 = row.get(1)?;
    Ok(LedgerRow {
        id: row.get(0)?,
        entry: LedgerEntry {
            created: u64::try_from(created).unwrap_or_default(),
            reply_id: row.get(2)?,
            route: row.get(3)?,
            model: row.get(4)?,
            system_fingerprint: row.get(5)?,
            request_sha256: row.get(6)?,
            receipt_sha256: row.get(7)?,
            receipt: row.get(8)?,
        },
    })
}
