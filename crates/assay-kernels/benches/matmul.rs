//! Rates of the packed matmul: `cargo bench -p assay-kernels --bench matmul -- [isa] [a16|a8]
//! [threads] [types]`.
//!
//! GOP/s counts two operations per weight and token; GB/s counts the packed weights once per call.
//! A time is the lowest decile of its samples, so that a neighbour's work does not count.
//! Weights of few tokens are read from a ring of matrices larger than the caches, as in decode.

#![expect(clippy::print_stdout, reason = "a report for the terminal")]

use assay_formats::DType;
use assay_kernels::matmul::{Activations, PackedMatrix, WeightArena, matmul};
use assay_kernels::quantize::{ActivationProfile, QuantizedActivations};
use assay_kernels::testing::SeededGenerator;
use assay_kernels::{Compute, Isa, ThreadPool};
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

const TYPES: [DType; 20] = [
    DType::Q8_0,
    DType::Q4_0,
    DType::Q4_1,
    DType::Q5_0,
    DType::Q5_1,
    DType::Q4K,
    DType::Q5K,
    DType::Q6K,
    DType::Q2K,
    DType::Q3K,
    DType::IQ4NL,
    DType::IQ4XS,
    DType::IQ3S,
    DType::IQ3XXS,
    DType::IQ2S,
    DType::IQ2XS,
    DType::IQ2XXS,
    DType::IQ1M,
    DType::IQ1S,
    DType::MXFP4,
];
/// (N, K): the MLP of SmolLM2-135M (K padded to 256 for the K-quants) and its head.
const SHAPES: [(usize, usize); 3] = [(1536, 576), (576, 1536), (49_152, 576)];
/// Ring of matrices larger than the last cache.
const RING_BYTES: usize = 96 << 20;
const TIME_PER_CASE: Duration = Duration::from_millis(120);

/// Random blocks; the bytes that may be f16 exponents are kept small.
fn weights(
    arena: &mut WeightArena,
    cx: &Compute,
    dtype: DType,
    n: usize,
    k: usize,
) -> PackedMatrix {
    let row_bytes = dtype.row_bytes(k).expect("K is whole blocks");
    let mut bytes = SeededGenerator::new(7).bytes(n * row_bytes);
    let halves: &[usize] = match dtype {
        DType::Q4_1 | DType::Q5_1 | DType::Q4K | DType::Q5K => &[1, 3],
        DType::Q2K => &[81, 83],
        DType::Q3K => &[109],
        DType::Q6K => &[209],
        DType::IQ1M => &[51, 53, 55],
        DType::MXFP4 => &[0],
        _ => &[1],
    };
    for block in bytes.chunks_exact_mut(dtype.block_bytes()) {
        for &at in halves {
            block[at] = 0x1C | (block[at] & 0x83);
        }
    }
    PackedMatrix::pack_in(arena, cx, dtype, n, k, &bytes).expect("a valid matrix")
}

/// Seconds of one call, lowest decile.
fn time(mut call: impl FnMut()) -> f64 {
    call();
    let (start, mut samples) = (Instant::now(), Vec::new());
    while start.elapsed() < TIME_PER_CASE || samples.len() < 3 {
        let begin = Instant::now();
        call();
        samples.push(begin.elapsed().as_secs_f64());
    }
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 10]
}

fn main() {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with("--"))
        .collect();
    let isa = words
        .iter()
        .find_map(|word| Isa::by_name(word))
        .unwrap_or_else(Isa::detect);
    let profile = if words.iter().any(|word| word == "a8") {
        ActivationProfile::A8
    } else {
        ActivationProfile::A16
    };
    let threads = words
        .iter()
        .find_map(|word| word.parse().ok())
        .unwrap_or(NonZeroUsize::MIN);
    let cx = Compute::new(isa, ThreadPool::new(threads));
    println!("{} {profile:?}, {threads} thread(s)", isa.name());
    for num_tokens in [1, 64, 512] {
        let x = SeededGenerator::new(3).units(num_tokens * 576);
        let mut buffer = QuantizedActivations::default();
        let seconds = time(|| buffer.quantize(&cx, &x, 576, profile));
        println!(
            "quantise {num_tokens}x576: {:.3} ns an element",
            seconds * 1e9 / x.len() as f64
        );
    }
    let chosen = |dtype: &&DType| {
        let named = |word: &String| TYPES.iter().any(|t| t.name() == word);
        !words.iter().any(named) || words.iter().any(|word| word == dtype.name())
    };
    for dtype in TYPES.iter().filter(chosen) {
        for (n, k) in SHAPES {
            let k = k.next_multiple_of(dtype.block_len());
            let mut arena = WeightArena::new();
            let first = weights(&mut arena, &cx, *dtype, n, k);
            let copies = RING_BYTES.div_ceil(first.num_bytes()).min(256);
            print!("{dtype:>5} {n:>6}x{k:<5}");
            for num_tokens in [1, 4, 8, 16, 35, 64, 512] {
                if num_tokens * n > 1 << 24 {
                    continue;
                }
                let copies = if num_tokens <= 8 { copies } else { 1 };
                let mut ring: Vec<_> = (1..copies)
                    .map(|_| weights(&mut arena, &cx, *dtype, n, k))
                    .collect();
                let x = SeededGenerator::new(3).units(num_tokens * k);
                let mut out = vec![0.0; num_tokens * n];
                let mut buffer = QuantizedActivations::default();
                let mut next = 0;
                let seconds = time(|| {
                    let w = if next == 0 { &first } else { &ring[next - 1] };
                    next = (next + 1) % copies;
                    let input =
                        Activations::with_buffer(&cx, &x, k, profile, std::mem::take(&mut buffer));
                    matmul(&cx, w, &input, None, &mut out);
                    buffer = input.into_buffer();
                });
                ring.clear();
                let gops = 2.0 * (n * k * num_tokens) as f64 / seconds / 1e9;
                let gbs = first.num_bytes() as f64 / seconds / 1e9;
                print!("  T={num_tokens}: {gops:6.1} GOP/s {gbs:5.1} GB/s");
            }
            println!();
        }
    }
}
