//! Batches that break a rule are refused by name and leave the model usable.

use assay_models::{BlockId, ForwardBatch, ForwardError, ForwardModel, KvBlockCopy};
use assay_testkit::tiny_model::TinyModel;

use crate::support::Setup;

/// Two sequences: three rows from position 14 on (blocks 0 and 1), one row at 0 (block 2).
fn good() -> ForwardBatch {
    ForwardBatch {
        token_ids: vec![1, 2, 3, 4],
        positions: vec![14, 15, 16, 0],
        cu_seqlens: vec![0, 3, 4],
        block_tables: vec![vec![BlockId(0), BlockId(1)], vec![BlockId(2)]],
        logit_rows: vec![2, 3],
        block_copies: Vec::new(),
    }
}

fn check_refused(rule: &str, damage: impl Fn(&mut ForwardBatch)) {
    let mut model = Setup::tiny(&TinyModel::llama()).load();
    let expected = model.forward(&good()).unwrap();
    let mut bad = good();
    damage(&mut bad);
    let Err(ForwardError::MalformedBatch(text)) = model.forward(&bad) else {
        panic!("{rule}: {bad:?} was accepted");
    };
    assert!(text.contains(rule), "expected {rule:?} in {text:?}");
    let again = model.forward(&good()).unwrap();
    assert_eq!(again, expected, "after a refused batch");
}

#[test]
fn every_rule() {
    check_refused("3 positions for 4", |b| b.positions.truncate(3));
    check_refused("2 cu_seqlens for 2", |b| b.cu_seqlens = vec![0, 4]);
    check_refused("cu_seqlens for 2", |b| b.cu_seqlens.clear());
    check_refused("cu_seqlens run from Some(1)", |b| b.cu_seqlens[0] = 1);
    check_refused("cu_seqlens run from", |b| b.cu_seqlens[2] = 5);
    check_refused("sequence 0 has no rows", |b| b.cu_seqlens[1] = 0);
    check_refused("sequence 1 has no rows", |b| b.cu_seqlens[1] = 9);
    check_refused("token id 100 at row 2", |b| b.token_ids[2] = 100);
    check_refused("positions of sequence 0 go from 15 to 17", |b| {
        b.positions[2] = 17
    });
    check_refused("positions of sequence 0", |b| b.positions[0] = u32::MAX);
    check_refused("position 512 of sequence 1 in a context of 512", |b| {
        b.positions[3] = 512
    });
    check_refused("has 1 blocks, position 16 needs 2", |b| {
        b.block_tables[0].truncate(1)
    });
    check_refused("block 64 of sequence 1 in a pool of 64", |b| {
        b.block_tables[1][0].0 = 64
    });
    check_refused("written by sequence 0 and by sequence 1", |b| {
        b.block_tables[1][0].0 = 1
    });
    check_refused("written by sequence 0 and by sequence 0", |b| {
        b.block_tables[0][1].0 = 0
    });
    check_refused("logit_rows are not ascending", |b| {
        b.logit_rows = vec![3, 2]
    });
    check_refused("logit_rows are not ascending", |b| {
        b.logit_rows = vec![2, 2]
    });
    check_refused("logit row 4 of a batch of 4", |b| b.logit_rows = vec![4]);
    for (from, to) in [(0, 9_999), (9_999, 0)] {
        check_refused("block 9999 of a copy in a pool of", |b| {
            b.block_copies = vec![KvBlockCopy {
                from: BlockId(from),
                to: BlockId(to),
            }];
        });
    }
}

/// Sequences may read the same block as long as one at most writes it.
#[test]
fn a_shared_prefix_is_fine() {
    let mut model = Setup::tiny(&TinyModel::llama()).load();
    let batch = ForwardBatch {
        token_ids: vec![1, 2],
        positions: vec![16, 16],
        cu_seqlens: vec![0, 1, 2],
        block_tables: vec![vec![BlockId(0), BlockId(1)], vec![BlockId(0), BlockId(2)]],
        logit_rows: vec![0, 1],
        block_copies: Vec::new(),
    };
    assert_eq!(model.forward(&batch).unwrap().num_rows(), 2);
}

#[test]
fn an_empty_batch_gives_no_rows() {
    let mut model = Setup::tiny(&TinyModel::llama()).load();
    let batch = ForwardBatch {
        cu_seqlens: vec![0],
        ..ForwardBatch::default()
    };
    assert_eq!(model.forward(&batch).unwrap().num_rows(), 0);
}
