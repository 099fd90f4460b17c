//! Attention against the scalar reference, and a row's independence of batch, chunking, blocks and threads.

use std::ops::Range;

use crate::{contexts, reference};
use assay_kernels::Compute;
use assay_kernels::attention::{
    AttentionParams, KV_BLOCK_TOKENS, KvLayer, SequenceSpan, attention, kv_write,
};
use assay_kernels::testing::{SeededGenerator, check_bits_equal};

/// f16 NaN: what unwritten slots hold in these tests.
const POISON: u16 = 0x7E00;

/// One sequence's activations, `num_tokens` rows from position 0 on.
#[derive(Clone)]
struct Sequence {
    num_tokens: usize,
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
}

impl Sequence {
    fn new(params: &AttentionParams<'_>, num_tokens: usize, seed: u64) -> Self {
        let mut generator = SeededGenerator::new(seed);
        let q_len = num_tokens * params.num_heads * params.head_dim;
        let kv_len = num_tokens * params.num_kv_heads * params.head_dim;
        let mut activations =
            |len| -> Vec<f32> { (0..len).map(|_| generator.next_unit() * 4.0).collect() };
        let (q, k, v) = (activations(q_len), activations(kv_len), activations(kv_len));
        Self {
            num_tokens,
            q,
            k,
            v,
        }
    }
}

fn params(num_heads: usize, num_kv_heads: usize, head_dim: usize) -> AttentionParams<'static> {
    AttentionParams {
        num_heads,
        num_kv_heads,
        head_dim,
        scale: 0.125,
        window: None,
        softcap: None,
        sinks: None,
    }
}

/// Runs whole `passes` of `(sequence, rows)` in one layer and returns each sequence's output.
///
/// Block ids are dealt in an order that `placement` scatters; every slot holds a NaN before it is written.
fn run(
    cx: &Compute,
    params: &AttentionParams<'_>,
    sequences: &[&Sequence],
    passes: &[Vec<(usize, Range<usize>)>],
    placement: usize,
) -> Vec<Vec<f32>> {
    let num_blocks: Vec<usize> = sequences
        .iter()
        .map(|s| s.num_tokens.div_ceil(KV_BLOCK_TOKENS))
        .collect();
    let total: usize = num_blocks.iter().sum::<usize>() + 3;
    let mut ids = (0..total as u32).map(|i| (i * placement as u32 + 2) % total as u32);
    let tables: Vec<Vec<u32>> = num_blocks
        .iter()
        .map(|&n| ids.by_ref().take(n).collect())
        .collect();
    let mut layer = KvLayer::new(total, params.num_kv_heads, params.head_dim);
    let (k_bits, v_bits) = layer.as_bits_mut();
    k_bits.fill(POISON);
    v_bits.fill(POISON);
    let (q_row, kv_row) = (
        params.num_heads * params.head_dim,
        params.num_kv_heads * params.head_dim,
    );
    let mut outputs: Vec<Vec<f32>> = sequences
        .iter()
        .map(|s| vec![f32::INFINITY; s.num_tokens * q_row])
        .collect();
    for pass in passes {
        let (mut q, mut k, mut v, mut spans) = (vec![], vec![], vec![], vec![]);
        for (s, rows) in pass {
            spans.push(SequenceSpan {
                first_row: q.len() / q_row,
                num_rows: rows.len(),
                first_position: rows.start,
                block_table: &tables[*s],
            });
            q.extend_from_slice(&sequences[*s].q[rows.start * q_row..rows.end * q_row]);
            k.extend_from_slice(&sequences[*s].k[rows.start * kv_row..rows.end * kv_row]);
            v.extend_from_slice(&sequences[*s].v[rows.start * kv_row..rows.end * kv_row]);
        }
        kv_write(cx, &mut layer, &spans, &k, &v);
        let mut out = vec![f32::INFINITY; q.len()];
        attention(cx, params, &layer, &spans, &q, &mut out);
        for ((s, rows), span) in pass.iter().zip(&spans) {
            let from = &out[span.first_row * q_row..][..rows.len() * q_row];
            outputs[*s][rows.start * q_row..rows.end * q_row].copy_from_slice(from);
        }
    }
    outputs
}

/// One sequence whole, in pieces and token by token, on every context.
fn check_attention(label: &str, params: &AttentionParams<'_>, num_tokens: usize) {
    let sequence = Sequence::new(params, num_tokens, num_tokens as u64);
    let whole = vec![vec![(0, 0..num_tokens)]];
    let expected = &run(&reference(), params, &[&sequence], &whole, 1)[0];
    assert!(
        expected.iter().all(|x| x.is_finite()),
        "{label}: a poisoned slot was read"
    );
    let shape = [num_tokens, params.num_heads, params.head_dim];
    for (name, cx) in contexts() {
        let got = run(&cx, params, &[&sequence], &whole, 1);
        check_bits_equal(&format!("{label} whole, {name}"), &shape, expected, &got[0]);
        let mut pieces = Vec::new();
        let mut start = 0;
        for len in [1, 40, 7, 16, 100, 3].into_iter().cycle() {
            if start == num_tokens {
                break;
            }
            let end = num_tokens.min(start + len);
            pieces.push(vec![(0, start..end)]);
            start = end;
        }
        let got = run(&cx, params, &[&sequence], &pieces, 1);
        check_bits_equal(
            &format!("{label} in pieces, {name}"),
            &shape,
            expected,
            &got[0],
        );
    }
}

#[test]
fn contexts_around_blocks_and_chunks() {
    for num_tokens in [1, 2, 15, 16, 17, 31, 33, 255, 256, 257, 300] {
        check_attention("gqa 3/1", &params(3, 1, 64), num_tokens);
    }
    check_attention("gqa 3/1", &params(3, 1, 16), 513);
}

#[test]
fn head_shapes() {
    for (num_heads, num_kv_heads, head_dim) in [
        (1, 1, 16),
        (2, 2, 48),
        (4, 2, 80),
        (5, 1, 96),
        (4, 1, 128),
        (2, 1, 256),
        (7, 1, 32),
        (16, 2, 32),
        (26, 1, 16),
    ] {
        let label = format!("heads {num_heads}/{num_kv_heads} of {head_dim}");
        check_attention(&label, &params(num_heads, num_kv_heads, head_dim), 70);
    }
}

#[test]
fn every_tile_height() {
    for num_tokens in 1..=26 {
        check_attention("mha", &params(1, 1, 32), num_tokens);
    }
}

#[test]
fn windows_move_with_the_query_and_chunks_do_not() {
    for window in [1, 2, 5, 16, 17, 100, 255, 256, 257, 1_000] {
        let params = AttentionParams {
            window: Some(window),
            ..params(2, 1, 32)
        };
        check_attention(&format!("window {window}"), &params, 330);
    }
}

#[test]
fn softcaps_and_sinks() {
    let sinks = [0.5, -3.0, 40.0];
    for (softcap, sinks) in [
        (Some(20.0), None),
        (None, Some(&sinks[..])),
        (Some(2.0), Some(&sinks[..])),
    ] {
        let params = AttentionParams {
            softcap,
            sinks,
            window: Some(270),
            ..params(3, 1, 64)
        };
        check_attention(
            &format!("softcap {softcap:?} sinks {sinks:?}"),
            &params,
            300,
        );
    }
}

#[test]
fn token_by_token_equals_whole() {
    let params = params(3, 1, 32);
    let sequence = Sequence::new(&params, 280, 5);
    let expected = &run(&reference(), &params, &[&sequence], &[vec![(0, 0..280)]], 1)[0];
    let steps: Vec<_> = (0..280).map(|i| vec![(0, i..i + 1)]).collect();
    for (name, cx) in contexts() {
        let got = run(&cx, &params, &[&sequence], &steps, 1);
        check_bits_equal(
            &format!("token by token, {name}"),
            &[280, 3, 32],
            expected,
            &got[0],
        );
    }
}

#[test]
fn neighbours_and_block_placement_do_not_show() {
    let params = params(6, 2, 32);
    let sequences: Vec<Sequence> = [300, 5, 64, 270]
        .iter()
        .enumerate()
        .map(|(seed, &num_tokens)| Sequence::new(&params, num_tokens, seed as u64))
        .collect();
    let alone: Vec<Vec<f32>> = sequences
        .iter()
        .map(|s| {
            run(
                &reference(),
                &params,
                &[s],
                &[vec![(0, 0..s.num_tokens)]],
                1,
            )
            .remove(0)
        })
        .collect();
    let together: Vec<&Sequence> = sequences.iter().collect();
    let passes = vec![
        vec![(0, 0..290), (1, 0..4), (3, 0..40)],
        vec![(3, 40..41), (0, 290..299), (1, 4..5), (2, 0..64)],
        vec![(0, 299..300), (3, 41..270)],
    ];
    for (name, cx) in contexts() {
        for placement in [1, 5, 13] {
            let got = run(&cx, &params, &together, &passes, placement);
            for (s, (expected, got)) in alone.iter().zip(&got).enumerate() {
                let label = format!("sequence {s} of a batch, placement {placement}, {name}");
                check_bits_equal(&label, &[sequences[s].num_tokens, 6, 32], expected, got);
            }
        }
    }
}

#[test]
fn ids_past_the_blocks_in_use_may_be_anything() {
    let params = params(2, 1, 16);
    let num_tokens = 257;
    let sequence = Sequence::new(&params, num_tokens, 11);
    let ids: Vec<u32> = (0..17).collect();
    let longer: Vec<u32> = ids.iter().copied().chain([u32::MAX; 3]).collect();
    let run = |cx: &Compute, block_table: &[u32]| {
        let mut layer = KvLayer::new(17, 1, 16);
        let span = SequenceSpan {
            first_row: 0,
            num_rows: num_tokens,
            first_position: 0,
            block_table,
        };
        kv_write(cx, &mut layer, &[span], &sequence.k, &sequence.v);
        let mut out = vec![0.0; sequence.q.len()];
        attention(cx, &params, &layer, &[span], &sequence.q, &mut out);
        out
    };
    for (name, cx) in contexts() {
        let (expected, got) = (run(&cx, &ids), run(&cx, &longer));
        check_bits_equal(
            &format!("longer table, {name}"),
            &[num_tokens, 2, 16],
            &expected,
            &got,
        );
    }
}

#[test]
fn nan_and_infinity_reach_their_rows_and_no_other() {
    let params = params(3, 1, 32);
    for (bad, row, what) in [
        (f32::NAN, 270, "k"),
        (f32::NAN, 3, "v"),
        (f32::INFINITY, 20, "q"),
        (f32::NAN, 100, "q"),
    ] {
        let clean = Sequence::new(&params, 290, 9);
        let mut sequence = clean.clone();
        match what {
            "q" => sequence.q[row * 96 + 40] = bad,
            "k" => sequence.k[row * 32 + 4] = bad,
            _ => sequence.v[row * 32 + 4] = bad,
        }
        let whole = [vec![(0, 0..290)]];
        let before = &run(&reference(), &params, &[&clean], &whole, 1)[0];
        let expected = &run(&reference(), &params, &[&sequence], &whole, 1)[0];
        let first_bad = expected.iter().position(|x| x.is_nan());
        assert_eq!(
            first_bad.map(|i| i / 96),
            Some(row),
            "{bad} in {what} of row {row}"
        );
        check_bits_equal(
            "rows before",
            &[row, 96],
            &before[..row * 96],
            &expected[..row * 96],
        );
        for (name, cx) in contexts() {
            let got = run(&cx, &params, &[&sequence], &whole, 1);
            let label = format!("{bad} in {what} of row {row}, {name}");
            check_bits_equal(&label, &[290, 3, 32], expected, &got[0]);
        }
    }
}

#[test]
fn keys_and_values_saturate_and_round_alike() {
    let params = params(1, 1, 32);
    let values = [
        65_504.0,
        65_519.9,
        65_520.0,
        1e30,
        f32::INFINITY,
        f32::NEG_INFINITY,
        -65_536.0,
        f32::NAN,
        5.96e-8,
        2.98e-8,
        2.99e-8,
        -0.0,
        6.1e-5,
        1.000_488_3,
        1.001_464_8,
        f32::MIN_POSITIVE,
    ];
    let rows: Vec<f32> = values.iter().cycle().take(20 * 32).copied().collect();
    let span = SequenceSpan {
        first_row: 0,
        num_rows: 20,
        first_position: 3,
        block_table: &[1, 0],
    };
    let bits = |cx: &Compute| {
        let mut layer = KvLayer::new(2, params.num_kv_heads, params.head_dim);
        kv_write(cx, &mut layer, &[span], &rows, &rows);
        let (k, v) = layer.as_bits();
        let canonical = |&bits: &u16| if bits & 0x7FFF > 0x7C00 { POISON } else { bits };
        (
            k.iter().map(canonical).collect::<Vec<_>>(),
            v.iter().map(canonical).collect::<Vec<_>>(),
        )
    };
    let expected = bits(&reference());
    assert_eq!(
        expected.1[32 * KV_BLOCK_TOKENS + 3 * 32..][..8],
        [
            0x7BFF, 0x7BFF, 0x7BFF, 0x7BFF, 0x7BFF, 0xFBFF, 0xFBFF, POISON
        ]
    );
    for (name, cx) in contexts() {
        assert!(bits(&cx) == expected, "stored bits, {name}");
    }
}

#[test]
#[should_panic(expected = "block 7 of a layer of 2")]
fn a_block_outside_the_layer_is_refused() {
    let params = params(1, 1, 16);
    let layer = KvLayer::new(2, 1, 16);
    let span = SequenceSpan {
        first_row: 0,
        num_rows: 1,
        first_position: 0,
        block_table: &[7],
    };
    attention(
        &reference(),
        &params,
        &layer,
        &[span],
        &[0.0; 16],
        &mut [0.0; 16],
    );
}
