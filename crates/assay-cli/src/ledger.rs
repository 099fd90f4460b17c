//! `assay ledger`: what a server's ledger holds, listed, shown, computed again.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use assay_server::ledger::{LedgerReader, LedgerRow, RowName};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::config::ModelArgs;
use crate::interrupt::Interrupt;
use crate::replay::{NotIdentical, NotReplayed, Replayer};
use crate::terminal::{self, say};

/// What to do with a ledger.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum LedgerCommand {
    /// List the latest rows
    List {
        /// The ledger
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Rows at most
        #[arg(long, value_name = "N", default_value = "50")]
        limit: u32,
        /// Print a JSON object a row
        #[arg(long)]
        json: bool,
    },
    /// Print the receipt of one row
    Show {
        /// The ledger
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Number of the row, name of the reply, or hash of the receipt
        #[arg(value_name = "ROW")]
        row: String,
    },
    /// Compute receipts again: exit status 1 if one is not identical
    Replay(Box<ReplayRows>),
}

/// Which rows to compute again.
#[derive(Args, Clone, Debug)]
pub(crate) struct ReplayRows {
    /// The ledger
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Rows by number, name of the reply, or hash of the receipt
    #[arg(
        value_name = "ROW",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    rows: Vec<String>,
    /// All rows, the oldest first
    #[arg(long)]
    all: bool,
    /// Print a JSON object a row
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    model: ModelArgs,
}

/// Lists, shows, or computes again.
///
/// # Errors
/// If the file is no ledger or has no such row; [`NotIdentical`] if a receipt is not confirmed, [`NotReplayed`] if one
/// could not be computed.
pub(crate) fn run(command: LedgerCommand, interrupt: &Interrupt) -> Result<()> {
    match command {
        LedgerCommand::List { file, limit, json } => list(&open(&file)?, limit, json),
        LedgerCommand::Show { file, row } => {
            let row = find(&open(&file)?, &row)?;
            Ok(writeln!(terminal::stdout(), "{}", row.entry.receipt)?)
        }
        LedgerCommand::Replay(rows) => replay(*rows, interrupt),
    }
}

fn open(file: &Path) -> Result<LedgerReader> {
    LedgerReader::open(file).with_context(|| format!("the ledger {}", file.display()))
}

fn find(ledger: &LedgerReader, name: &str) -> Result<LedgerRow> {
    let by = name
        .parse()
        .map_or_else(|_| RowName::Text(name.to_owned()), RowName::Number);
    let row = ledger.find(&by)?;
    row.with_context(|| format!("the ledger has no row `{name}`"))
}

fn list(ledger: &LedgerReader, limit: u32, json: bool) -> Result<()> {
    let mut out = terminal::stdout();
    for LedgerRow { id, entry } in ledger.latest(limit)? {
        if json {
            let row = json!({
                "row": id,
                "created": entry.created,
                "reply_id": entry.reply_id,
                "route": entry.route,
                "model": entry.model,
                "system_fingerprint": entry.system_fingerprint,
                "request_sha256": entry.request_sha256,
                "receipt_sha256": entry.receipt_sha256,
            });
            writeln!(out, "{row}")?;
        } else {
            let hash = entry.receipt_sha256.get(..16).unwrap_or_default();
            writeln!(
                out,
                "{id:>8}  {}  {:<20}  {}  {}  {hash}",
                entry.created, entry.route, entry.reply_id, entry.system_fingerprint
            )?;
        }
    }
    Ok(())
}

fn replay(rows: ReplayRows, interrupt: &Interrupt) -> Result<()> {
    let ledger = open(&rows.file).context(NotReplayed)?;
    let mut run = Run {
        replayer: Replayer::new(rows.model, interrupt),
        json: rows.json,
        num_rows: 0,
        num_identical: 0,
    };
    if rows.all {
        let mut last = i64::MIN;
        while let Some(row) = ledger.next(last).context(NotReplayed)? {
            last = row.id;
            run.replay(&row)?;
        }
    }
    for name in &rows.rows {
        run.replay(&find(&ledger, name).context(NotReplayed)?)?;
    }
    run.end()
}

/// Rows computed again so far.
struct Run {
    replayer: Replayer,
    json: bool,
    num_rows: usize,
    num_identical: usize,
}

impl Run {
    fn replay(&mut self, row: &LedgerRow) -> Result<()> {
        let verdict = self.replayer.replay(row.entry.receipt.as_bytes());
        let verdict = verdict
            .with_context(|| format!("row {}", row.id))
            .context(NotReplayed)?;
        self.num_rows += 1;
        self.num_identical += usize::from(verdict.is_identical());
        let mut out = terminal::stdout();
        if self.json {
            let mut line = json!({"row": row.id, "reply_id": row.entry.reply_id});
            if let (Value::Object(line), Value::Object(verdict)) = (&mut line, verdict.json()) {
                line.extend(verdict);
            }
            writeln!(out, "{line}")?;
        } else {
            writeln!(out, "{} {verdict}", row.id)?;
        }
        Ok(())
    }

    fn end(self) -> Result<()> {
        say(format_args!(
            "{} of {} rows are identical",
            self.num_identical, self.num_rows
        ));
        if self.num_identical == self.num_rows {
            Ok(())
        } else {
            Err(NotIdentical.into())
        }
    }
}
