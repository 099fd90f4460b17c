//! The meaning of attention's three steps for one query, in contract order.

use std::ops::Range;

use super::KV_BLOCK_TOKENS;
use super::running::Running;
use super::tile::Tile;
use crate::exp::exp;
use crate::numerics::{SUM_LANES, f16_to_f32, sum_lanes};
use crate::softcap::softcap_one;

/// Attends over `keys`, absolute positions, all visible and of one chunk: returns `(m_c, l_c)` and writes `o_c`,
/// `[head_dim]`.
pub(super) fn attend_chunk(
    tile: &Tile<'_>,
    query: usize,
    keys: Range<usize>,
    values: &mut [f32],
) -> (f32, f32) {
    let params = tile.params;
    let (k, v) = tile.layer.as_bits();
    let block_start = |key: usize| {
        let block = tile.span.block_table[key / KV_BLOCK_TOKENS];
        tile.layer.head_block(block, tile.kv_head).start
    };
    let q: Vec<f32> = tile.q[tile.at(query)..][..params.head_dim]
        .iter()
        .map(|&x| x * params.scale)
        .collect();
    let score = |key: usize| {
        let at = block_start(key) + key % KV_BLOCK_TOKENS;
        let score = q.iter().enumerate().fold(0.0_f32, |score, (d, &q)| {
            q.mul_add(f16_to_f32(k[at + d * KV_BLOCK_TOKENS]), score)
        });
        params.softcap.map_or(score, |cap| softcap_one(score, cap))
    };
    let scores: Vec<f32> = keys.clone().map(score).collect();
    let max = scores.iter().copied().fold(f32::NEG_INFINITY, max_or_nan);
    let mut lanes = [0.0; SUM_LANES];
    values.fill(0.0);
    for (key, score) in keys.zip(scores) {
        let p = exp(score - max);
        lanes[key % SUM_LANES] += p;
        let at = block_start(key) + key % KV_BLOCK_TOKENS * params.head_dim;
        for (d, value) in values.iter_mut().enumerate() {
            *value = p.mul_add(f16_to_f32(v[at + d]), *value);
        }
    }
    (max, sum_lanes(lanes))
}

/// Joins the next chunk, `(m_c, l_c)` and `o_c`.
pub(super) fn join(
    running: &mut Running,
    values: &mut [f32],
    (max_c, sum_c): (f32, f32),
    values_c: &[f32],
) {
    let (a, b) = rescale(running, max_c);
    running.sum = sum_c.mul_add(b, running.sum * a);
    for (o, &o_c) in values.iter_mut().zip(values_c) {
        *o = o_c.mul_add(b, *o * a);
    }
}

/// Joins the sink, a key with `p = 1` and no value, and writes `o / l`.
pub(super) fn finish(mut running: Running, values: &mut [f32], sink: Option<f32>, out: &mut [f32]) {
    if let Some(logit) = sink {
        let (a, b) = rescale(&mut running, logit);
        running.sum = 1.0_f32.mul_add(b, running.sum * a);
        for o in values.iter_mut() {
            *o *= a;
        }
    }
    for (out, o) in out.iter_mut().zip(values) {
        *out = *o / running.sum;
    }
}

/// Moves to the joint maximum and returns the factors of the old part and of the new.
fn rescale(running: &mut Running, max: f32) -> (f32, f32) {
    let joint = max_or_nan(running.max, max);
    let factors = (exp(running.max - joint), exp(max - joint));
    running.max = joint;
    factors
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
