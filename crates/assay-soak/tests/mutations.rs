//! The matrix notices: a fault that is built in on purpose fails the cells that bring it about, and no other.

use std::num::NonZeroUsize;
use std::sync::Arc;

use assay_soak::matrix::{Bench, Cell, CellError, Chunk, Prefix};
use assay_soak::mutant::Mutation;
use assay_soak::rig::Drafts;
use assay_soak::subject::{Subject, Weights, models_dir};

/// Seeds that may be tried until a cell's condition comes about.
const NUM_TRIES: u64 = 6;

/// Alone, cold, whole, without drafts, on one thread.
fn plain() -> Cell {
    Cell {
        together: 1,
        prefix: Prefix::Cold,
        chunk: Chunk::Whole,
        drafts: Drafts::Off,
        threads: NonZeroUsize::MIN,
        weights: Weights::Kept,
    }
}

fn subject() -> Arc<Subject> {
    let models = models_dir().expect("a home directory");
    Subject::named("tiny-llama", &models).expect("a known model")
}

/// `cell` fails under `mutation` because bits differ, and holds without it.
fn check_noticed(subject: &Arc<Subject>, mutation: Mutation, cell: &Cell) {
    let bench = |mutation| Bench::with_mutation(subject, mutation).expect("the requests are spelt");
    let noticed = bench(Some(mutation)).run(cell, 1, NUM_TRIES);
    let differs = matches!(&noticed, Err(CellError::Fault(fault)) if fault.contains("alone"));
    assert!(differs, "{mutation:?}, {cell}: {noticed:?}");
    let sound = bench(None).run(cell, 1, NUM_TRIES);
    assert!(sound.is_ok(), "{cell}: {sound:?}");
}

fn check_unmoved(subject: &Arc<Subject>, mutation: Mutation, cell: &Cell) {
    let mut bench = Bench::with_mutation(subject, Some(mutation)).expect("the requests are spelt");
    let run = bench.run(cell, 1, NUM_TRIES);
    assert!(run.is_ok(), "{mutation:?}, {cell}: {run:?}");
}

#[test]
fn a_wrong_block_is_noticed_behind_a_prefix_hit_and_behind_a_chunk() {
    let subject = subject();
    let mutation = Mutation::WrongBlock;
    check_unmoved(&subject, mutation, &plain());
    for num_tokens in [47, 48, 49] {
        let prefix = Prefix::Hit(num_tokens);
        let cell = Cell { prefix, ..plain() };
        check_noticed(&subject, mutation, &cell);
    }
    let chunk = Chunk::Rows(NonZeroUsize::new(16).expect("not zero"));
    check_noticed(&subject, mutation, &Cell { chunk, ..plain() });
}

#[test]
fn a_neighbours_row_is_noticed_in_company() {
    let subject = subject();
    check_unmoved(&subject, Mutation::SwappedRows, &plain());
    for together in [2, 8] {
        let cell = Cell {
            together,
            ..plain()
        };
        check_noticed(&subject, Mutation::SwappedRows, &cell);
    }
}

#[test]
fn one_bit_of_a_drafts_row_is_noticed() {
    let subject = subject();
    check_unmoved(&subject, Mutation::LaterRowBit, &plain());
    for drafts in [Drafts::Ngram, Drafts::Model] {
        let cell = Cell { drafts, ..plain() };
        check_noticed(&subject, Mutation::LaterRowBit, &cell);
    }
}

#[test]
fn one_bit_is_noticed_on_any_threads_before_and_after_a_restart() {
    let subject = subject();
    let threads = NonZeroUsize::new(2).expect("not zero");
    let weights = Weights::LoadedAnew;
    for cell in [
        plain(),
        Cell { threads, ..plain() },
        Cell { weights, ..plain() },
    ] {
        check_noticed(&subject, Mutation::LastBit, &cell);
    }
}
