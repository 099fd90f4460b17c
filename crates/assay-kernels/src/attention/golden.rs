//! Golden cases of attention: a prefill over two chunks, and a decode step with everything that moves a score.

use super::{AttentionParams, KV_BLOCK_TOKENS, SequenceSpan};
use crate::golden::{GoldenCase, hash_f32};
use crate::golden_ops::{GoldenOps, KeysValues};
use crate::testing::SeededGenerator;

const PLAIN: AttentionParams<'static> = AttentionParams {
    num_heads: 3,
    num_kv_heads: 1,
    head_dim: 16,
    scale: 0.25,
    window: None,
    softcap: None,
    sinks: None,
};

pub(crate) const CASES: &[GoldenCase] = &[
    GoldenCase {
        name: "attention/prefill",
        run: |ops| hash_last_rows(ops, 0x0E01, &PLAIN, 270, 30),
    },
    GoldenCase {
        name: "attention/window_softcap_sinks",
        run: |ops| {
            let params = AttentionParams {
                num_heads: 4,
                num_kv_heads: 2,
                head_dim: 48,
                window: Some(290),
                softcap: Some(3.0),
                sinks: Some(&[0.5, -1.0, 2.0, 0.0]),
                ..PLAIN
            };
            hash_last_rows(ops, 0x0E02, &params, 600, 3)
        },
    },
];

/// Hash of the outputs of the last `num_rows` of a sequence.
fn hash_last_rows(
    ops: &dyn GoldenOps,
    seed: u64,
    params: &AttentionParams<'_>,
    num_tokens: usize,
    num_rows: usize,
) -> Option<blake3::Hash> {
    let mut generator = SeededGenerator::new(seed);
    let kv_len = num_tokens * params.num_kv_heads * params.head_dim;
    let (k, v) = (generator.units(kv_len), generator.units(kv_len));
    let block_table: Vec<u32> = (0..num_tokens.div_ceil(KV_BLOCK_TOKENS) as u32)
        .rev()
        .collect();
    let whole = SequenceSpan {
        first_row: 0,
        num_rows: num_tokens,
        first_position: 0,
        block_table: &block_table,
    };
    let mut q = generator.units(num_rows * params.num_heads * params.head_dim);
    q.iter_mut().for_each(|q| *q *= 16.0);
    let last = SequenceSpan {
        num_rows,
        first_position: num_tokens - num_rows,
        ..whole
    };
    let stored = KeysValues {
        num_blocks: block_table.len(),
        span: whole,
        k: &k,
        v: &v,
    };
    Some(hash_f32(&ops.attention(params, &stored, &last, &q)))
}
