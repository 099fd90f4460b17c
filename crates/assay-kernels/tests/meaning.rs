//! The scalar references against the textbook formulas in f64: they say what the ops mean, where `bit_equal` only
//! says that all paths agree.

use assay_kernels::attention::{
    AttentionParams, KV_BLOCK_TOKENS, KvLayer, SequenceSpan, attention, kv_write,
};
use assay_kernels::gelu_mul::gelu_mul;
use assay_kernels::numerics::{f16_to_f32, f32_to_f16};
use assay_kernels::silu_mul::silu_mul;
use assay_kernels::softcap::softcap;
use assay_kernels::testing::SeededGenerator;
use assay_kernels::{Compute, Isa, ThreadPool};
use std::num::NonZeroUsize;

fn scalar() -> Compute {
    Compute::new(Isa::SCALAR, ThreadPool::new(NonZeroUsize::MIN))
}

fn check_close(label: &str, at: usize, got: f32, expected: f64, bound: f64) {
    let error = (f64::from(got) - expected).abs();
    assert!(
        error <= bound,
        "{label} at {at}: {got:e}, f64 says {expected:e}, {error:e} apart"
    );
}

#[test]
fn gates_and_softcap() {
    let mut generator = SeededGenerator::new(31);
    let gate: Vec<f32> = generator.units(4_000).iter().map(|x| x * 30.0).collect();
    let up = generator.units(gate.len());
    let mut silu = vec![0.0; gate.len()];
    silu_mul(&scalar(), &gate, &up, &mut silu);
    let mut gelu = vec![0.0; gate.len()];
    gelu_mul(&scalar(), &gate, &up, &mut gelu);
    let mut capped = gate.clone();
    softcap(&scalar(), &mut capped, 20.0);
    for (i, (&g, &u)) in gate.iter().zip(&up).enumerate() {
        let (g, u) = (f64::from(g), f64::from(u));
        let expected = g / (1.0 + (-g).exp()) * u;
        check_close(
            "silu_mul",
            i,
            silu[i],
            expected,
            expected.abs() * 1e-6 + 1e-30,
        );
        let tanh = (0.797_884_560_802_865_4 * (g + 0.044_715 * g * g * g)).tanh();
        let expected = 0.5 * g * (1.0 + tanh) * u;
        check_close("gelu_mul", i, gelu[i], expected, 1e-6 * g.abs());
        check_close(
            "softcap",
            i,
            capped[i],
            20.0 * (g / 20.0).tanh(),
            20.0 * 3e-7,
        );
    }
}

/// Attention of every row of one sequence against softmax over an explicit list of visible keys.
fn check_attention(params: &AttentionParams<'_>, num_tokens: usize) {
    let mut generator = SeededGenerator::new(num_tokens as u64);
    let (heads, kv_heads, dim) = (params.num_heads, params.num_kv_heads, params.head_dim);
    let q: Vec<f32> = generator
        .units(num_tokens * heads * dim)
        .iter()
        .map(|x| x * 6.0)
        .collect();
    let k = generator.units(num_tokens * kv_heads * dim);
    let v = generator.units(num_tokens * kv_heads * dim);
    let block_table: Vec<u32> = (0..num_tokens.div_ceil(KV_BLOCK_TOKENS) as u32)
        .rev()
        .collect();
    let mut layer = KvLayer::new(block_table.len(), kv_heads, dim);
    let span = SequenceSpan {
        first_row: 0,
        num_rows: num_tokens,
        first_position: 0,
        block_table: &block_table,
    };
    kv_write(&scalar(), &mut layer, &[span], &k, &v);
    let mut out = vec![0.0; q.len()];
    attention(&scalar(), params, &layer, &[span], &q, &mut out);
    let stored = |x: f32| f64::from(f16_to_f32(f32_to_f16(x)));
    for row in 0..num_tokens {
        for head in 0..heads {
            let at = (row * heads + head) * dim;
            let kv_at = |key: usize| (key * kv_heads + head * kv_heads / heads) * dim;
            let visible =
                (0..=row).filter(|key| params.window.is_none_or(|w| row - key < w as usize));
            let mut weights = Vec::new();
            for key in visible {
                let dot: f64 = (0..dim)
                    .map(|d| f64::from(q[at + d]) * stored(k[kv_at(key) + d]))
                    .sum();
                let mut score = dot * f64::from(params.scale);
                if let Some(cap) = params.softcap {
                    score = f64::from(cap) * (score / f64::from(cap)).tanh();
                }
                weights.push((key, score.exp()));
            }
            let sink = params
                .sinks
                .map_or(0.0, |sinks| f64::from(sinks[head]).exp());
            let sum: f64 = weights.iter().map(|(_, weight)| weight).sum::<f64>() + sink;
            for d in 0..dim {
                let expected: f64 = weights
                    .iter()
                    .map(|&(key, weight)| weight / sum * stored(v[kv_at(key) + d]))
                    .sum();
                check_close("attention", at + d, out[at + d], expected, 4e-6);
            }
        }
    }
}

#[test]
fn attention_is_softmax_over_visible_keys() {
    let plain = AttentionParams {
        num_heads: 4,
        num_kv_heads: 2,
        head_dim: 32,
        scale: 0.25,
        window: None,
        softcap: None,
        sinks: None,
    };
    check_attention(&plain, 300);
    check_attention(
        &AttentionParams {
            window: Some(40),
            ..plain
        },
        300,
    );
    check_attention(
        &AttentionParams {
            softcap: Some(2.0),
            ..plain
        },
        40,
    );
    let sinks = [1.0, -2.0, 3.0, 0.0];
    check_attention(
        &AttentionParams {
            sinks: Some(&sinks),
            window: Some(3),
            ..plain
        },
        40,
    );
}
