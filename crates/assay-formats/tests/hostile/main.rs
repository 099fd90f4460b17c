//! Bad files: a corpus of named faults, truncation at every byte, and random damage.
//!
//! Every case must end in an error that names the place, or in a header that keeps its promises; never in a panic,
//! nor in more heap than the file has bytes. The corpus covers, for each number that the reader
//! takes from a file, zero, huge, negative, wrong type, wrap-around and past the end (`known-faults` 181-195).

mod allocation;
mod corpus;
mod damage;
mod raw;

use std::collections::BTreeSet;

use corpus::Case;

/// Parses `bytes` and returns the error's text; fails when it is accepted or takes too much memory.
fn refusal(name: &str, bytes: &[u8]) -> String {
    match allocation::parse_bounded(name, bytes) {
        Ok(_) => panic!("{name}: accepted"),
        Err(error) => error.to_string(),
    }
}

fn check_case(case: &Case) {
    let text = refusal(case.name, &case.file.bytes);
    for expected in &case.expected {
        assert!(
            text.contains(expected),
            "{}: no {expected:?} in {text:?}",
            case.name
        );
    }
    if let Some(marked) = case.file.marked {
        let place = format!("at byte {marked}:");
        assert!(
            text.contains(&place),
            "{}: no {place:?} in {text:?}",
            case.name
        );
    }
}

#[test]
fn every_hostile_file_is_refused_with_its_place() {
    let cases = corpus::all();
    assert!(cases.len() >= 60, "{} cases", cases.len());
    let names: BTreeSet<&str> = cases.iter().map(|case| case.name).collect();
    assert_eq!(names.len(), cases.len(), "case names are unique");
    cases.iter().for_each(check_case);
}
