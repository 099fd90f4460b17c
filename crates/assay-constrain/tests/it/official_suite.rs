//! The official JSON Schema test suite (draft 2020-12) against a committed baseline.
//!
//! For each group of cases: refused when compiled (never wrong, only less), or enforced, and then each
//! instance either right, too strict (valid, but the mask forbids it) or too loose (invalid, but the
//! mask lets it through). The baseline says which; a run that differs from it fails, so it can only be
//! improved, by hand: `ASSAY_BLESS=1 cargo test -p assay-constrain official_suite`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use assay_constrain::{ConstraintError, ConstraintFactory};
use serde::Deserialize;
use serde_json::Value;

use crate::vocabulary::{Walk, factory, walk};

#[derive(Deserialize)]
struct Group {
    description: String,
    schema: Value,
    tests: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    description: String,
    data: Value,
    valid: bool,
}

#[derive(Default)]
struct Totals {
    groups: usize,
    refused: usize,
    right: usize,
    too_strict: usize,
    too_loose: usize,
}

#[test]
fn official_suite_is_as_good_as_its_baseline() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/json-schema-test-suite");
    let mut report = String::new();
    let mut totals = Totals::default();
    let factory = factory();
    for path in json_files(&data.join("draft2020-12")) {
        let name = path
            .strip_prefix(&data)
            .expect("it is below")
            .display()
            .to_string();
        let text = std::fs::read_to_string(&path).expect("a readable file");
        let groups: Vec<Group> = serde_json::from_str(&text).expect("groups of cases");
        for group in groups {
            report_group(&factory, &name, &group, &mut report, &mut totals);
        }
    }
    let Totals {
        groups,
        refused,
        right,
        too_strict,
        too_loose,
    } = totals;
    let summary = format!(
        "{groups} groups: {refused} refused when compiled; of the others' instances {right} right, \
         {too_strict} too strict, {too_loose} too loose\n"
    );
    check_baseline(&data.join("baseline.txt"), &(summary + &report));
}

fn report_group(
    factory: &ConstraintFactory,
    file: &str,
    group: &Group,
    report: &mut String,
    totals: &mut Totals,
) {
    totals.groups += 1;
    let constraint = match factory.compile_json_schema(&group.schema) {
        Ok(constraint) => constraint,
        // Nothing satisfies it: right if no instance is valid.
        Err(ConstraintError::Unsatisfiable { .. })
            if group.tests.iter().all(|case| !case.valid) =>
        {
            totals.right += group.tests.len();
            return;
        }
        Err(error) => {
            totals.refused += 1;
            line(
                report,
                "refused",
                file,
                &group.description,
                &error.to_string(),
            );
            return;
        }
    };
    for case in &group.tests {
        let text = case.data.to_string();
        let token_ids: Vec<u32> = text.bytes().map(u32::from).collect();
        let accepted = walk(&constraint, &token_ids) == Walk::Complete;
        match (case.valid, accepted) {
            (true, false) => {
                totals.too_strict += 1;
                line(
                    report,
                    "too strict",
                    file,
                    &group.description,
                    &case.description,
                );
            }
            (false, true) => {
                totals.too_loose += 1;
                line(
                    report,
                    "too loose",
                    file,
                    &group.description,
                    &case.description,
                );
            }
            _ => totals.right += 1,
        }
    }
}

fn line(report: &mut String, outcome: &str, file: &str, group: &str, detail: &str) {
    let detail: String = detail.chars().take(120).collect();
    writeln!(report, "{outcome} | {file} | {group} | {detail}").expect("a string takes it");
}

fn check_baseline(path: &Path, report: &str) {
    if std::env::var_os("ASSAY_BLESS").is_some() {
        std::fs::write(path, report).expect("a writable baseline");
    }
    let baseline = std::fs::read_to_string(path).expect("a baseline");
    for (was, is) in baseline.lines().zip(report.lines()) {
        assert_eq!(is, was, "this run (left) differs from the baseline (right)");
    }
    assert_eq!(
        report.lines().count(),
        baseline.lines().count(),
        "lines of the report"
    );
}

/// Files at any depth, by name.
fn json_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a readable folder");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    paths
        .into_iter()
        .flat_map(|path| {
            if path.is_dir() {
                json_files(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}
