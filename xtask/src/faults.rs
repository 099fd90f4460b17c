//! `docs/faults.md` is complete and true: every row is listed once, and each test that it names exists and carries the
//! row's number.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;

/// The last row; every fourth number was never given.
const LAST_ROW: u32 = 179;

fn rows() -> impl Iterator<Item = u32> {
    (1..=LAST_ROW).filter(|row| row % 4 != 0)
}

/// Stands in place of a test, before the reason.
const NOT_HERE: &str = "does not apply: ";

/// What is wrong with the list.
pub(crate) fn faults(list: &str, sources: &[String]) -> Vec<String> {
    let tests: BTreeSet<&str> = sources.iter().flat_map(|text| functions(text)).collect();
    let mut missing: BTreeSet<u32> = rows().collect();
    let mut found = Vec::new();
    for line in list.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, row, _, test, _] = cells[..] else {
            continue;
        };
        let Ok(row) = row.parse::<u32>() else {
            continue;
        };
        if !missing.remove(&row) {
            found.push(format!("row {row} is listed twice, or is none"));
        }
        if test
            .strip_prefix(NOT_HERE)
            .is_some_and(|reason| !reason.is_empty())
        {
            continue;
        }
        let named: Vec<&str> = test.split('`').skip(1).step_by(2).collect();
        if named.is_empty() {
            found.push(format!("row {row} names no test"));
        }
        for name in named {
            if !tests.contains(name) {
                found.push(format!("row {row}: there is no test `{name}`"));
            }
            if !carries(name, row) {
                found.push(format!("row {row}: `{name}` does not carry its number"));
            }
        }
    }
    found.extend(missing.iter().map(|row| format!("row {row} is not listed")));
    found
}

/// Names of a source's functions.
fn functions(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let line = line.trim_start();
        let line = line.strip_prefix("async ").unwrap_or(line);
        line.strip_prefix("fn ")?.split('(').next()
    })
}

fn carries(name: &str, row: u32) -> bool {
    let words: Vec<&str> = name.split('_').collect();
    let row = row.to_string();
    words.windows(2).any(|pair| pair == ["fault", &row])
}

/// Reads the list and all sources below `root`.
///
/// # Errors
/// If a file cannot be read.
pub(crate) fn check(root: &Path, sources: &[String]) -> Result<Vec<String>> {
    let list = std::fs::read_to_string(root.join("docs/faults.md"))?;
    let marked = faults(&list, sources).into_iter();
    Ok(marked
        .map(|fault| format!("docs/faults.md: {fault}"))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::{carries, faults, rows};

    #[test]
    fn a_name_carries_whole_numbers() {
        assert!(carries("v1_fault_7_fault_30_x", 30));
        assert!(!carries("v1_fault_7_fault_30_x", 3));
        assert!(!carries("n7_v3_x", 7));
    }

    #[test]
    fn what_is_wrong_is_told() {
        let sources = ["fn fault_1_x() {}\nasync fn fault_2_y() {}".to_owned()];
        let list = "| 1 | a | `fault_1_x` |\n| 1 | a | `fault_1_x` |\n| 2 | b | `fault_1_x`, `fault_2_z` |\n\
            | 3 | c | does not apply: no such thing |\n| 4 | d | |";
        let told = faults(list, &sources);
        // Row 1 twice, row 2 by a test of another number and by one that is none, row 4 is no row and names no test.
        assert_eq!(told.len(), 5 + rows().count() - 3, "{told:?}");
    }
}
