//! The named bad files: each is a good file with one fault, and the words its error must contain.

mod entries;
mod fixed;
mod tensors;

use crate::raw::Raw;

/// One bad file.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) file: Raw,
    pub(crate) expected: Vec<&'static str>,
}

fn case(name: &'static str, file: Raw, expected: &[&'static str]) -> Case {
    Case {
        name,
        file,
        expected: expected.to_vec(),
    }
}

/// All cases.
pub(crate) fn all() -> Vec<Case> {
    [
        fixed::cases(),
        entries::cases(),
        entries::array_cases(),
        tensors::cases(),
        tensors::data_cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
