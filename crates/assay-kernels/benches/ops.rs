//! Time of each small op on each instruction set, one thread, data in cache: `cargo bench -p assay-kernels`.
//!
//! The best of several batches, because other processes only ever add time. Throughput stands beside it, to
//! be read against the machine's own ceilings.

#![expect(clippy::print_stdout, reason = "a bench reports to the terminal")]

use assay_kernels::float_matmul::{FloatMatrix, FloatType, float_matmul};
use assay_kernels::residual::add;
use assay_kernels::rms_norm::rms_norm;
use assay_kernels::rope::{RopeParameters, RopeStyle, RopeTable, rope};
use assay_kernels::testing::SeededGenerator;
use assay_kernels::top_k::top_k;
use assay_kernels::{Compute, Isa, ThreadPool, self_test};
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::time::Instant;

/// Prints the best time of `op` in nanoseconds, and `bytes` read and written per second.
fn report(op: &str, isa: Isa, bytes: usize, mut run: impl FnMut()) {
    let start = Instant::now();
    run();
    let once = start.elapsed().as_nanos().max(1) as usize;
    let repeats = (2_000_000 / once).clamp(1, 20_000);
    let best = (0..9)
        .map(|_| {
            let start = Instant::now();
            (0..repeats).for_each(|_| run());
            start.elapsed().as_nanos() as f64 / repeats as f64
        })
        .fold(f64::INFINITY, f64::min);
    println!(
        "{op:<34} {:<7} {best:>11.0} ns {:>8.1} GB/s",
        isa.name(),
        bytes as f64 / best
    );
}

/// Values that start on a cache line, as the engine's activations do.
struct Aligned {
    values: Vec<f32>,
    start: usize,
    len: usize,
}

impl Aligned {
    fn units(generator: &mut SeededGenerator, len: usize) -> Self {
        let values = generator.units(len + 16);
        let start = values.as_ptr().align_offset(64);
        Self { values, start, len }
    }

    fn as_slice(&self) -> &[f32] {
        &self.values[self.start..][..self.len]
    }

    fn as_mut_slice(&mut self) -> &mut [f32] {
        &mut self.values[self.start..][..self.len]
    }
}

fn ops(isa: Isa) {
    let cx = Compute::new(isa, ThreadPool::new(NonZeroUsize::MIN));
    let mut generator = SeededGenerator::new(1);
    for n in [576, 4096] {
        let (x, weight) = (
            Aligned::units(&mut generator, n),
            Aligned::units(&mut generator, n),
        );
        let (x, weight) = (x.as_slice(), weight.as_slice());
        let mut out = Aligned::units(&mut generator, n);
        let out = out.as_mut_slice();
        report(&format!("rms_norm {n}"), isa, 12 * n, || {
            rms_norm(&cx, black_box(x), weight, 1e-5, out);
        });
    }
    let x = generator.units(576);
    let mut out = vec![0.0; 576];
    report("residual add 576", isa, 12 * 576, || {
        add(&cx, black_box(&mut out), &x)
    });

    let parameters = RopeParameters {
        rotary_dims: 64,
        theta: 1e5,
        freq_factors: None,
        linear_scale: 1.0,
        num_positions: 2048,
    };
    let table = RopeTable::new(&parameters).expect("the parameters are in range");
    let mut x = generator.units(9 * 64);
    for style in [RopeStyle::Interleaved, RopeStyle::HalfSplit] {
        report(&format!("rope {style:?} 9 x 64"), isa, 8 * 576, || {
            rope(&cx, &table, style, &[1234], black_box(&mut x), 9, 64);
        });
    }
    for vocab_size in [49_152, 262_144] {
        let row = Aligned::units(&mut generator, vocab_size);
        let row = row.as_slice();
        report(
            &format!("top_k {vocab_size} k=20"),
            isa,
            4 * vocab_size,
            || {
                black_box(top_k(isa, black_box(row), 20)).expect("no NaN");
            },
        );
    }
    for (float_type, t) in [
        (FloatType::F32, 1),
        (FloatType::F16, 1),
        (FloatType::BF16, 1),
        (FloatType::F16, 32),
    ] {
        let (n, k) = (576, 576);
        let bytes: Vec<u8> = generator
            .bytes(n * k * float_type.size_bytes())
            .iter()
            .map(|b| b & 0x3F)
            .collect();
        let matrix = FloatMatrix::from_le_bytes(float_type, n, k, &bytes).expect("sizes fit");
        let (x, mut out) = (generator.units(t * k), vec![0.0; t * n]);
        report(
            &format!("float_matmul {float_type:?} {n}x{k} T={t}"),
            isa,
            bytes.len(),
            || {
                float_matmul(&cx, &matrix, black_box(&x), None, &mut out);
            },
        );
    }
    report("self_test", isa, 0, || {
        self_test(&cx).expect("the kernels are right")
    });
}

fn pool() {
    let isa = Isa::SCALAR;
    for num_threads in [1, 2] {
        let pool = ThreadPool::new(NonZeroUsize::new(num_threads).expect("positive"));
        report(
            &format!("pool.run of 2 empty tasks, {num_threads} thr."),
            isa,
            0,
            || {
                pool.run(2, &|index| {
                    black_box(index);
                });
            },
        );
    }
    let parameters = RopeParameters {
        rotary_dims: 64,
        theta: 1e5,
        freq_factors: None,
        linear_scale: 1.0,
        num_positions: 8192,
    };
    report("RopeTable::new 8192 x 32", isa, 0, || {
        black_box(RopeTable::new(&parameters)).expect("the parameters are in range");
    });
}

fn main() {
    // Given by `cargo bench`; under `cargo test --benches` a smoke run would only burn time.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    pool();
    Isa::available().into_iter().for_each(ops);
}
