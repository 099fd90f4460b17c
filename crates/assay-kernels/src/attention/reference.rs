//! The meaning of attention: one query head at one position, in contract order.

use super::kv::{KV_BLOCK_TOKENS, KvLayer, from_f16_bits};
use super::{AttentionParams, CHUNK_KEYS};
use crate::exp::exp;
use crate::softcap::softcap_one;

const SUM_LANES: usize = 32;

/// Attends from `position` with query `q`, `[head_dim]`, and writes `out`, `[head_dim]`.
pub(super) fn attend(
    params: &AttentionParams<'_>,
    layer: &KvLayer,
    block_table: &[u32],
    position: usize,
    head: usize,
    q: &[f32],
    out: &mut [f32],
) {
    let kv_head = head / (params.num_heads / params.num_kv_heads);
    let q: Vec<f32> = q.iter().map(|&x| x * params.scale).collect();
    let keys = params.visible_keys(position);
    let mut running = Running {
        max: f32::NEG_INFINITY,
        sum: 0.0,
        values: vec![0.0; params.head_dim],
    };
    let mut first = keys.start;
    while first < keys.end {
        let end = keys.end.min((first / CHUNK_KEYS + 1) * CHUNK_KEYS);
        let block =
            |key: usize| layer.head_block_start(block_table[key / KV_BLOCK_TOKENS], kv_head);
        let scores: Vec<f32> = (first..end)
            .map(|key| score(params, layer, block(key), key, &q))
            .collect();
        let max = scores.iter().copied().fold(f32::NEG_INFINITY, max_or_nan);
        let mut lanes = [0.0; SUM_LANES];
        let mut values = vec![0.0_f32; params.head_dim];
        for (key, score) in (first..end).zip(scores) {
            let p = exp(score - max);
            lanes[key % SUM_LANES] += p;
            let at = block(key) + key % KV_BLOCK_TOKENS * params.head_dim;
            for (d, value) in values.iter_mut().enumerate() {
                *value = p.mul_add(from_f16_bits(layer.as_bits().1[at + d]), *value);
            }
        }
        running.join(max, tree_sum(lanes), &values);
        first = end;
    }
    if let Some(sinks) = params.sinks {
        running.join_sink(sinks[head]);
    }
    for (out, value) in out.iter_mut().zip(&running.values) {
        *out = value / running.sum;
    }
}

fn score(
    params: &AttentionParams<'_>,
    layer: &KvLayer,
    block: usize,
    key: usize,
    q: &[f32],
) -> f32 {
    let slot = key % KV_BLOCK_TOKENS;
    let score = q.iter().enumerate().fold(0.0_f32, |acc, (d, &q)| {
        q.mul_add(
            from_f16_bits(layer.as_bits().0[block + d * KV_BLOCK_TOKENS + slot]),
            acc,
        )
    });
    params.softcap.map_or(score, |cap| softcap_one(score, cap))
}

fn max_or_nan(a: f32, b: f32) -> f32 {
    if a.is_nan() || b.is_nan() {
        f32::NAN
    } else if b > a {
        b
    } else {
        a
    }
}

fn tree_sum(mut lanes: [f32; SUM_LANES]) -> f32 {
    let mut half = SUM_LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] += lanes[lane + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// Softmax so far over the chunks before.
struct Running {
    max: f32,
    sum: f32,
    values: Vec<f32>,
}

impl Running {
    fn join(&mut self, max: f32, sum: f32, values: &[f32]) {
        let joint = max_or_nan(self.max, max);
        let a = exp(self.max - joint);
        let b = exp(max - joint);
        self.max = joint;
        self.sum = sum.mul_add(b, self.sum * a);
        for (o, &o_c) in self.values.iter_mut().zip(values) {
            *o = o_c.mul_add(b, *o * a);
        }
    }

    /// A sink is a chunk of one key without a value: its `p` is 1, and `o` is only rescaled.
    fn join_sink(&mut self, logit: f32) {
        let joint = max_or_nan(self.max, logit);
        let a = exp(self.max - joint);
        self.max = joint;
        self.sum = 1.0_f32.mul_add(exp(logit - joint), self.sum * a);
        for o in &mut self.values {
            *o *= a;
        }
    }
}
