//! Rows of a JSONL or CSV file as states. A row that cannot be one keeps its place, with its fault.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// One row.
#[derive(Debug)]
pub(super) struct Row {
    /// Counted from 1, the header not among them.
    pub(super) number: usize,
    /// The state as JSON, spelled as the file spells it, or why there is none.
    pub(super) state: Result<String, String>,
}

/// Form of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// A JSON value a line.
    JsonLines,
    /// A header, then records.
    Csv,
}

impl Format {
    pub(super) fn of(path: &Path, is_csv: bool) -> Self {
        let extension = path.extension().unwrap_or_default();
        if is_csv || extension.eq_ignore_ascii_case("csv") {
            Self::Csv
        } else {
            Self::JsonLines
        }
    }
}

/// All rows; `field` names the member or column that is the state.
pub(super) fn read(path: &Path, format: Format, field: Option<&str>) -> Result<Vec<Row>> {
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        io::stdin()
            .read_to_end(&mut bytes)
            .context("cannot read standard input")?;
    } else {
        bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    }
    match format {
        Format::JsonLines => Ok(json_lines(&bytes, field)),
        Format::Csv => csv_records(&bytes, field),
    }
}

fn json_lines(bytes: &[u8], field: Option<&str>) -> Vec<Row> {
    let lines = bytes.split(|byte| *byte == b'\n');
    let lines = lines.filter(|line| !line.trim_ascii().is_empty());
    let rows = lines.enumerate().map(|(index, line)| Row {
        number: index + 1,
        state: json_state(line, field),
    });
    rows.collect()
}

fn json_state(line: &[u8], field: Option<&str>) -> Result<String, String> {
    let raw: &RawValue =
        serde_json::from_slice(line).map_err(|error| format!("not JSON: {error}"))?;
    let state = match field {
        None => raw.get().to_owned(),
        Some(field) => {
            let members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(raw.get())
                .map_err(|error| format!("not an object: {error}"))?;
            let member = members.get(field);
            let member = member.ok_or_else(|| format!("has no member {field:?}"))?;
            member.get().to_owned()
        }
    };
    if state.starts_with(['"', '{', '[']) {
        Ok(state)
    } else {
        Err("a state is a string, an object or an array".to_owned())
    }
}

fn csv_records(bytes: &[u8], field: Option<&str>) -> Result<Vec<Row>> {
    let mut reader = csv::Reader::from_reader(bytes);
    let header = reader
        .headers()
        .context("the rows have no readable header")?
        .clone();
    let column = match field {
        None => None,
        Some(field) => {
            let column = header.iter().position(|name| name == field);
            Some(
                column
                    .with_context(|| format!("--field {field}: the header has no such column"))?,
            )
        }
    };
    let state = |record: csv::Result<csv::StringRecord>| {
        let record = record.map_err(|error| error.to_string())?;
        let state = match column {
            Some(column) => Value::from(record.get(column).unwrap_or_default()),
            None => {
                let pairs = header.iter().zip(record.iter());
                let members: Map<String, Value> = pairs
                    .map(|(name, text)| (name.to_owned(), Value::from(text)))
                    .collect();
                Value::Object(members)
            }
        };
        Ok(state.to_string())
    };
    let rows = reader.records().enumerate().map(|(index, record)| Row {
        number: index + 1,
        state: state(record),
    });
    Ok(rows.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states(rows: &[Row]) -> Vec<Option<&str>> {
        rows.iter().map(|row| row.state.as_deref().ok()).collect()
    }

    #[test]
    fn bad_rows_keep_their_place() {
        let text = b"\"a\"\n{\"s\": 1.10, \"t\": \"x\"}\n\n{\"s\": \n[1]\n7\n\xff\n{}";
        let rows = json_lines(text, None);
        assert_eq!(
            states(&rows),
            [
                Some("\"a\""),
                Some("{\"s\": 1.10, \"t\": \"x\"}"),
                None,
                Some("[1]"),
                None,
                None,
                Some("{}")
            ]
        );
        assert_eq!(rows.last().map(|row| row.number), Some(7));
        assert_eq!(
            states(&json_lines(text, Some("t")))[..2],
            [None, Some("\"x\"")]
        );
        let text = b"id,text\n1,\"a, \"\"b\"\"\nc\"\n2\n3,d\n";
        let rows = csv_records(text, Some("text")).expect("a header");
        assert_eq!(
            states(&rows),
            [Some("\"a, \\\"b\\\"\\nc\""), None, Some("\"d\"")]
        );
        let rows = csv_records(text, None).expect("a header");
        assert_eq!(states(&rows)[2], Some("{\"id\":\"3\",\"text\":\"d\"}"));
        assert!(csv_records(text, Some("words")).is_err());
    }
}
