//! Golden cases of attention: a prefill over two chunks, and a decode step with everything that moves a score.

use super::{AttentionParams, KV_BLOCK_TOKENS, KvLayer, SequenceSpan, attention, kv_write};
use crate::Compute;
use crate::golden::{GoldenCase, hash_f32};
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
        run: |cx| hash_last_rows(cx, 0x0E01, &PLAIN, 270, 30),
    },
    GoldenCase {
        name: "attention/window_softcap_sinks",
        run: |cx| {
            let params = AttentionParams {
                num_heads: 4,
                num_kv_heads: 2,
                head_dim: 48,
                window: Some(290),
                softcap: Some(3.0),
                sinks: Some(&[0.5, -1.0, 2.0, 0.0]),
                ..PLAIN
            };
            hash_last_rows(cx, 0x0E02, &params, 600, 3)
        },
    },
];

/// Hash of the outputs of the last `num_rows` of a sequence.
fn hash_last_rows(
    cx: &Compute,
    seed: u64,
    params: &AttentionParams<'_>,
    num_tokens: usize,
    num_rows: usize,
) -> blake3::Hash {
    let mut generator = SeededGenerator::new(seed);
    let kv_len = num_tokens * params.num_kv_heads * params.head_dim;
    let (k, v) = (generator.units(kv_len), generator.units(kv_len));
    let block_table: Vec<u32> = (0..num_tokens.div_ceil(KV_BLOCK_TOKENS) as u32)
        .rev()
        .collect();
    let mut layer = KvLayer::new(block_table.len(), params.num_kv_heads, params.head_dim);
    let whole = SequenceSpan {
        first_row: 0,
        num_rows: num_tokens,
        first_position: 0,
        block_table: &block_table,
    };
    kv_write(cx, &mut layer, &[whole], &k, &v);
    let mut q = generator.units(num_rows * params.num_heads * params.head_dim);
    q.iter_mut().for_each(|q| *q *= 16.0);
    let mut out = vec![0.0; q.len()];
    let last = SequenceSpan {
        num_rows,
        first_position: num_tokens - num_rows,
        ..whole
    };
    attention(cx, params, &layer, &[last], &q, &mut out);
    hash_f32(&out)
}
