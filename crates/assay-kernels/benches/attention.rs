//! Time of attention a key-head, of storing a token's keys and values, of log-sum-exp and of the gates, on each
//! instruction set, one thread: `cargo bench -p assay-kernels --bench attention`.
//!
//! The best of many short runs, because other processes only ever add time.

#![expect(clippy::print_stdout, reason = "a bench reports to the terminal")]

use assay_kernels::attention::{
    AttentionParams, KV_BLOCK_TOKENS, KvLayer, SequenceSpan, attention, kv_write,
};
use assay_kernels::gelu_mul::gelu_mul;
use assay_kernels::log_softmax::log_sum_exp;
use assay_kernels::silu_mul::silu_mul;
use assay_kernels::testing::SeededGenerator;
use assay_kernels::{Compute, Isa, ThreadPool};
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::time::Instant;

/// Rows of the prefill that is timed, the last of their context.
const PREFILL_ROWS: usize = 48;

/// Best time of `run` in nanoseconds.
fn best_ns(mut run: impl FnMut()) -> f64 {
    (0..60)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_nanos() as f64
        })
        .fold(f64::INFINITY, f64::min)
}

/// Attention and the write of one layer; `num_layers` of them are visited in turn, so that a large number makes
/// keys and values come from memory.
fn bench_attention(
    cx: &Compute,
    params: &AttentionParams<'_>,
    num_tokens: usize,
    num_layers: usize,
) {
    let (q_len, kv_len) = (
        params.num_heads * params.head_dim,
        params.num_kv_heads * params.head_dim,
    );
    let mut generator = SeededGenerator::new(1);
    let k = generator.units(num_tokens * kv_len);
    let v = generator.units(num_tokens * kv_len);
    let q = generator.units(PREFILL_ROWS * q_len);
    let mut out = vec![0.0; q.len()];
    let block_table: Vec<u32> = (0..num_tokens.div_ceil(KV_BLOCK_TOKENS) as u32).collect();
    let mut layers: Vec<KvLayer> = (0..num_layers)
        .map(|_| KvLayer::new(block_table.len(), params.num_kv_heads, params.head_dim))
        .collect();
    let span = |num_rows| SequenceSpan {
        first_row: 0,
        num_rows,
        first_position: num_tokens - num_rows,
        block_table: &block_table,
    };
    let write = layers
        .iter_mut()
        .map(|layer| best_ns(|| kv_write(cx, layer, &[span(num_tokens)], &k, &v)))
        .fold(f64::INFINITY, f64::min);
    let mut layer = layers.iter().cycle();
    let mut attend = |num_rows: usize| {
        best_ns(|| {
            let layer = layer.next().expect("an endless cycle");
            let len = num_rows * q_len;
            attention(
                cx,
                params,
                layer,
                &[span(num_rows)],
                &q[..len],
                &mut out[..len],
            );
        })
    };
    let (prefill, decode) = (attend(PREFILL_ROWS), attend(1));
    let hidden = PREFILL_ROWS * (PREFILL_ROWS - 1) / 2;
    let prefill_keys = (PREFILL_ROWS * num_tokens - hidden) * params.num_heads;
    println!(
        "{:<7} heads {}/{} of {}, context {num_tokens}, {num_layers} layers: prefill {:.2} ns a key-head, \
         decode {:.2}, write {:.0} ns a token",
        cx.isa.name(),
        params.num_heads,
        params.num_kv_heads,
        params.head_dim,
        prefill / prefill_keys as f64,
        decode / (num_tokens * params.num_heads) as f64,
        write / num_tokens as f64,
    );
}

fn main() {
    for isa in Isa::available() {
        let cx = Compute::new(isa, ThreadPool::new(NonZeroUsize::MIN));
        let name = isa.name();
        for (num_heads, num_kv_heads, head_dim, num_layers) in [
            (9, 3, 64, 1),
            (9, 3, 64, 60),
            (3, 3, 64, 1),
            (14, 2, 64, 1),
            (16, 8, 128, 1),
        ] {
            let params = AttentionParams {
                num_heads,
                num_kv_heads,
                head_dim,
                scale: 0.125,
                window: None,
                softcap: None,
                sinks: None,
            };
            for num_tokens in [512, 2_048] {
                if isa != Isa::SCALAR {
                    bench_attention(&cx, &params, num_tokens, num_layers);
                }
            }
        }
        let mut generator = SeededGenerator::new(2);
        for len in [49_152, 262_144] {
            let row: Vec<f32> = generator.units(len).iter().map(|x| x * 20.0).collect();
            let time = best_ns(|| {
                let _ = black_box(log_sum_exp(&cx, &row));
            });
            println!("{name:<7} log_sum_exp of {len}: {:.1} us", time / 1e3);
        }
        let (gate, up) = (generator.units(8_192), generator.units(8_192));
        let mut out = vec![0.0; gate.len()];
        let silu = best_ns(|| silu_mul(&cx, &gate, &up, &mut out)) / gate.len() as f64;
        let gelu = best_ns(|| gelu_mul(&cx, &gate, &up, &mut out)) / gate.len() as f64;
        println!("{name:<7} silu_mul {silu:.3} ns an element, gelu_mul {gelu:.3}");
    }
}
