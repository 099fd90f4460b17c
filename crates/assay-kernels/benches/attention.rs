//! Time of attention a key-head, of storing a token's keys and values, of log-sum-exp and of the gates, on each
//! instruction set, one thread: `cargo bench -p assay-kernels --bench attention -- [isa]`.
//!
//! The best of many short runs, because other processes only ever add time. A decision's shape is 35 rows behind a
//! state of 824 tokens.

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
use std::time::{Duration, Instant};

/// Rows of the prefill that is timed, the last of their context.
const PREFILL_ROWS: usize = 48;
/// Rows of a decision, and its context.
const DECISION: (usize, usize) = (35, 859);
/// How long a run is repeated: the host has slow moments.
const TIME_PER_CASE: Duration = Duration::from_millis(200);

/// Best time of `run` in nanoseconds.
fn best_ns(mut run: impl FnMut()) -> f64 {
    let (begin, mut best) = (Instant::now(), f64::INFINITY);
    while begin.elapsed() < TIME_PER_CASE {
        let start = Instant::now();
        run();
        best = best.min(start.elapsed().as_nanos() as f64);
    }
    best
}

/// Attention and the write of one layer; `num_layers` of them are visited in turn, so that a large number makes
/// keys and values come from memory.
fn bench_attention(
    cx: &Compute,
    params: &AttentionParams<'_>,
    (num_rows, num_tokens): (usize, usize),
    num_layers: usize,
) {
    let (q_len, kv_len) = (
        params.num_heads * params.head_dim,
        params.num_kv_heads * params.head_dim,
    );
    let mut generator = SeededGenerator::new(1);
    let k = generator.units(num_tokens * kv_len);
    let v = generator.units(num_tokens * kv_len);
    let q = generator.units(num_rows * q_len);
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
    let (prefill, decode) = (attend(num_rows), attend(1));
    let hidden = num_rows * (num_rows - 1) / 2;
    let prefill_keys = (num_rows * num_tokens - hidden) * params.num_heads;
    println!(
        "{:<7} heads {}/{} of {}, context {num_tokens}, {num_layers} layers: {num_rows} rows {:.2} ns a key-head, \
         one {:.2}, write {:.0} ns a token",
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
    let named = std::env::args()
        .skip(1)
        .find_map(|word| Isa::by_name(&word));
    for isa in named.map_or_else(Isa::available, |isa| vec![isa]) {
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
            for shape in [DECISION, (PREFILL_ROWS, 512), (PREFILL_ROWS, 2_048)] {
                if isa != Isa::SCALAR {
                    bench_attention(&cx, &params, shape, num_layers);
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
