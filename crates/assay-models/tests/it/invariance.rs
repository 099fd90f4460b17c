//! A row's logits are the same bits however the pass is cut, whoever shares it, on every thread count and ISA.

use assay_kernels::Isa;
use assay_models::{BlockId, ForwardModel, Model, Numerics};
use assay_testkit::tiny_model::{TINY_VOCAB, TinyModel};

use crate::support::{Chunk, Setup, batch, chunked_prompt, whole_prompt};

/// Crosses the attention's 256-key chunks, and the tiny Gemma's window of 32 many times.
const PROMPT_TOKENS: usize = 275;

fn token_ids(seed: u64, len: usize) -> Vec<u32> {
    (0..len as u64)
        .map(|i| ((i * i * 7 + i * 31 + seed * 101) % TINY_VOCAB) as u32)
        .collect()
}

fn assert_same_bits(what: &str, found: &[Vec<f32>], expected: &[Vec<f32>]) {
    assert_eq!(found.len(), expected.len(), "{what}: rows");
    for (row, (found, expected)) in found.iter().zip(expected).enumerate() {
        for (id, (found, expected)) in found.iter().zip(expected).enumerate() {
            assert_eq!(
                found.to_bits(),
                expected.to_bits(),
                "{what}: row {row}, id {id}: {found:e} against {expected:e}"
            );
        }
    }
}

/// Every ISA, thread count and chunking against the scalar reference on one thread.
fn check_chunks_threads_isas(model: &TinyModel, numerics: Numerics) {
    let prompt = token_ids(1, PROMPT_TOKENS);
    let mut setup = Setup::tiny(model);
    setup.numerics = numerics;
    let scalar = Setup {
        isa: Isa::SCALAR,
        num_threads: 1,
        ..setup.clone()
    };
    let expected = whole_prompt(&mut scalar.load(), &prompt);
    assert!(
        expected.iter().flatten().all(|logit| logit.is_finite()),
        "a tiny model must have finite logits"
    );
    for isa in Isa::available() {
        for num_threads in [1, 2] {
            let mut model = Setup {
                isa,
                num_threads,
                ..setup.clone()
            }
            .load();
            let chunk_lens: &[usize] = match (isa, numerics, num_threads) {
                // Token by token on the slowest path says nothing that the fast paths do not.
                (Isa::SCALAR, _, 1) => &[],
                (Isa::SCALAR, _, _) => &[16],
                (_, Numerics::Fast, _) => &[PROMPT_TOKENS, 16],
                (_, Numerics::Exact, 1) => &[PROMPT_TOKENS, 7],
                (_, Numerics::Exact, _) => &[PROMPT_TOKENS, 1, 16, 100],
            };
            for &chunk_len in chunk_lens {
                let found = chunked_prompt(&mut model, &prompt, chunk_len);
                let what = format!("{} x{num_threads}, chunks of {chunk_len}", isa.name());
                assert_same_bits(&what, &found, &expected);
            }
        }
    }
}

/// Three sequences advance by unequal steps in shared passes, their blocks scattered over the pool.
fn check_mixed_batches(tiny: &TinyModel) {
    let setup = Setup::tiny(tiny);
    let prompts = [token_ids(2, 130), token_ids(3, 41), token_ids(4, 275)];
    let alone: Vec<Vec<Vec<f32>>> = prompts
        .iter()
        .map(|prompt| whole_prompt(&mut setup.load(), prompt))
        .collect();

    let mut model = setup.load();
    fill_with_other_tokens(&mut model);
    // Sequence s owns the blocks b with b % 3 == s, last first.
    let tables: Vec<Vec<BlockId>> = (0..3)
        .map(|sequence| {
            let blocks = (0..20).rev().map(|i| BlockId(i * 3 + sequence));
            blocks.collect()
        })
        .collect();
    let steps = [[50, 41, 1], [1, 0, 200], [3, 0, 1], [76, 0, 73]];
    let mut done = [0; 3];
    let mut found: [Vec<Vec<f32>>; 3] = Default::default();
    for step in steps {
        let running: Vec<usize> = (0..3).filter(|&s| step[s] > 0).collect();
        let chunks: Vec<Chunk<'_>> = running
            .iter()
            .map(|&s| Chunk {
                token_ids: &prompts[s][done[s]..done[s] + step[s]],
                first_position: done[s],
                blocks: &tables[s],
            })
            .collect();
        let logits = model.forward(&batch(&chunks)).unwrap();
        let mut row = 0;
        for s in running {
            found[s].extend((row..row + step[s]).map(|row| logits.row(row).to_vec()));
            row += step[s];
            done[s] += step[s];
        }
    }
    for sequence in 0..3 {
        let what = format!("sequence {sequence} among others");
        assert_same_bits(&what, &found[sequence], &alone[sequence]);
    }
}

/// Leaves old keys and values in every block.
fn fill_with_other_tokens(model: &mut Model) {
    for first in [0, 32] {
        let blocks: Vec<BlockId> = (first..first + 32).map(BlockId).collect();
        let token_ids = token_ids(u64::from(first) + 9, 512);
        let chunk = Chunk {
            token_ids: &token_ids,
            first_position: 0,
            blocks: &blocks,
        };
        let mut batch = batch(&[chunk]);
        batch.logit_rows.clear();
        let logits = model.forward(&batch).unwrap();
        assert_eq!(logits.num_rows(), 0, "no rows were asked for");
    }
}

#[test]
fn llama_exact() {
    check_chunks_threads_isas(&TinyModel::llama(), Numerics::Exact);
}

#[test]
fn llama_fast() {
    check_chunks_threads_isas(&TinyModel::llama(), Numerics::Fast);
}

#[test]
fn gemma3_exact() {
    check_chunks_threads_isas(&TinyModel::gemma3(), Numerics::Exact);
}

#[test]
fn gemma3_fast() {
    check_chunks_threads_isas(&TinyModel::gemma3(), Numerics::Fast);
}

#[test]
fn llama_among_others() {
    check_mixed_batches(&TinyModel::llama());
}

#[test]
fn gemma3_among_others() {
    check_mixed_batches(&TinyModel::gemma3());
}

#[test]
fn profiles_differ() {
    let setup = Setup::tiny(&TinyModel::llama());
    let prompt = token_ids(5, 20);
    let exact = whole_prompt(&mut setup.load(), &prompt);
    let fast = Setup {
        numerics: Numerics::Fast,
        ..setup
    };
    assert_ne!(exact, whole_prompt(&mut fast.load(), &prompt));
}

#[test]
fn asking_for_fewer_rows_moves_no_bit() {
    let setup = Setup::tiny(&TinyModel::gemma3());
    let prompt = token_ids(6, 40);
    let all = whole_prompt(&mut setup.load(), &prompt);
    let blocks: Vec<BlockId> = (0..3).map(BlockId).collect();
    let mut some = batch(&[Chunk {
        token_ids: &prompt,
        first_position: 0,
        blocks: &blocks,
    }]);
    some.logit_rows = vec![0, 17, 39];
    let mut model = setup.load();
    let logits = model.forward(&some).unwrap();
    let found: Vec<Vec<f32>> = (0..3).map(|row| logits.row(row).to_vec()).collect();
    let expected: Vec<Vec<f32>> = [0, 17, 39].map(|row: usize| all[row].clone()).to_vec();
    assert_same_bits("three rows", &found, &expected);
}

/// A NaN weight reaches the logits of the sequence that reads it, and of no other.
#[test]
fn nan_reaches_the_row_that_reads_it() {
    for mut tiny in [TinyModel::llama(), TinyModel::gemma3()] {
        // The embedding is Q8_0, 34 bytes a block of 32, 8 blocks a row; an f16 scale of NaN. A head of its own
        // keeps the NaN out of every other row's logits.
        let mut head = tiny.tensor_mut("token_embd.weight").clone();
        head.name = "output.weight".to_owned();
        tiny.tensors.push(head);
        let bad_id = 42;
        let at = bad_id * 8 * 34;
        tiny.tensor_mut("token_embd.weight").bytes[at..at + 2].copy_from_slice(&[0x00, 0x7e]);

        let mut model = Setup::tiny(&tiny).load();
        let (clean, bad) = ([1, 2, 3], [4, 42, 5]);
        let (first, second) = ([BlockId(0)], [BlockId(1)]);
        let chunk = |token_ids, blocks| Chunk {
            token_ids,
            first_position: 0,
            blocks,
        };
        let logits = model
            .forward(&batch(&[chunk(&clean, &first), chunk(&bad, &second)]))
            .unwrap();
        let cx = model.compute();
        for row in 0..4 {
            assert!(
                logits.log_sum_exp(cx, row).is_ok(),
                "row {row} reads no NaN"
            );
            assert_eq!(logits.top_k(cx, row, 3).unwrap().len(), 3, "row {row}");
        }
        for row in 4..6 {
            assert!(
                logits.log_sum_exp(cx, row).is_err(),
                "row {row} reads a NaN"
            );
            assert!(logits.top_k(cx, row, 3).is_err(), "row {row} reads a NaN");
        }
    }
}
