//! The pairwise covering set of the invariance matrix: on both real models, and on tiny ones that need no file.

use std::sync::Arc;

use assay_soak::matrix::pairwise::covering_set;
use assay_soak::matrix::{Bench, Factors};
use assay_soak::subject::{Subject, models_dir};

/// Block edges where a hit ends: the first, one in the middle of a chunk of attention, and that chunk's end.
const TINY_EDGES: [usize; 3] = [1, 3, 16];
/// Fewer for real models, which take seconds a cell.
const REAL_EDGES: [usize; 2] = [1, 16];
/// Seeds that may be tried until drafts are both right and wrong.
const NUM_TRIES: u64 = 6;

/// Runs all cells of the set.
fn check_cells(name: &str) {
    let models = models_dir().expect("a home directory");
    let subject: Arc<Subject> = Subject::named(name, &models).expect("a known model");
    let mut bench = Bench::new(&subject).expect("its vocabulary spells the requests");
    let edges = if subject.is_real() {
        &REAL_EDGES[..]
    } else {
        &TINY_EDGES
    };
    let factors = Factors::with_edges(edges.iter().copied());
    for levels in covering_set(factors.sizes()) {
        let cell = factors.cell(levels);
        let report = bench
            .run(&cell, 1, NUM_TRIES)
            .unwrap_or_else(|error| panic!("{name}: {cell}: {error}"));
        assert!(report.num_replies >= cell.together, "{cell}: {report:?}");
    }
}

#[test]
fn tiny_llama_is_invariant() {
    check_cells("tiny-llama");
}

#[test]
fn tiny_gemma3_is_invariant() {
    check_cells("tiny-gemma3");
}

mod real_model {
    use super::check_cells;

    #[test]
    fn smollm2_is_invariant() {
        check_cells("smollm2");
    }

    #[test]
    fn gemma3_is_invariant() {
        check_cells("gemma3");
    }
}
