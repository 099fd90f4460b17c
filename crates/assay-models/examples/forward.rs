//! Times the forward pass of a GGUF file: prefill of 512 and 2,048 tokens, then decode, one stream; then steps of a
//! few rows whose logits are all wanted, as a draft's are.
//!
//! `cargo run --release -p assay-models --example forward -- MODEL.gguf [exact|fast] [THREADS]`
//!
//! The tokens are arbitrary: how long a pass takes does not depend on them.

use std::error::Error;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::{Duration, Instant};

use assay_formats::GgufFile;
use assay_kernels::{Compute, Isa, ThreadPool};
use assay_models::{BlockId, ForwardBatch, ForwardModel, LoadOptions, Model, Numerics};

/// Runs of each measurement; the best is printed.
const RUNS: usize = 3;
const PREFILL_TOKENS: [u32; 2] = [512, 2048];
const DECODE_TOKENS: u32 = 128;
const STEP_ROWS: [u32; 7] = [1, 2, 3, 4, 6, 8, 16];
/// Steps of each size.
const NUM_STEPS: u32 = 32;

#[expect(clippy::print_stdout, reason = "the figures are the point")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments
        .next()
        .ok_or("usage: forward MODEL.gguf [exact|fast] [THREADS]")?;
    let numerics = match arguments.next().as_deref() {
        None | Some("exact") => Numerics::Exact,
        Some("fast") => Numerics::Fast,
        Some(other) => return Err(format!("{other}: neither exact nor fast").into()),
    };
    let num_threads = match arguments.next() {
        Some(number) => number.parse()?,
        None => std::thread::available_parallelism()?,
    };
    let num_threads: NonZeroUsize = num_threads;

    let started = Instant::now();
    let options = LoadOptions {
        context_length: None,
        num_kv_blocks: 192,
        numerics,
        compute: Compute::new(Isa::detect(), ThreadPool::new(num_threads)),
        progress: None,
        packed_cache: None,
    };
    let mut model = Model::load(&GgufFile::open(Path::new(&path))?, options)?;
    let isa = model.compute().isa.name();
    println!(
        "{}, {numerics:?}, {isa}, {num_threads} threads",
        model.info().name
    );
    println!(
        "load              {:8.0} ms",
        started.elapsed().as_secs_f64() * 1e3
    );

    for num_tokens in PREFILL_TOKENS {
        let time = best(|| pass(&mut model, 0..num_tokens, 1))?;
        println!(
            "prefill {num_tokens:<9} {:8.1} tokens/s",
            f64::from(num_tokens) / time.as_secs_f64()
        );
    }
    pass(&mut model, 0..1, 1)?;
    let time = best(|| {
        (1..=DECODE_TOKENS)
            .map(|position| pass(&mut model, position..position + 1, 1))
            .sum()
    })?;
    println!(
        "decode {DECODE_TOKENS:<10} {:8.1} tokens/s",
        f64::from(DECODE_TOKENS) / time.as_secs_f64()
    );
    for num_rows in STEP_ROWS {
        let time = best(|| {
            (0..NUM_STEPS)
                .map(|step| {
                    let position = DECODE_TOKENS + step;
                    pass(&mut model, position..position + num_rows, num_rows)
                })
                .sum()
        })?;
        println!(
            "step of {num_rows:>2} rows   {:8.2} ms",
            time.as_secs_f64() * 1e3 / f64::from(NUM_STEPS)
        );
    }
    Ok(())
}

fn best(
    mut run: impl FnMut() -> Result<Duration, Box<dyn Error>>,
) -> Result<Duration, Box<dyn Error>> {
    let mut best = run()?;
    for _ in 1..RUNS {
        best = best.min(run()?);
    }
    Ok(best)
}

/// Runs the tokens at `positions` of one sequence and asks for the logits of the last `num_wanted` rows.
fn pass(
    model: &mut Model,
    positions: std::ops::Range<u32>,
    num_wanted: u32,
) -> Result<Duration, Box<dyn Error>> {
    let num_tokens = positions.end - positions.start;
    let batch = ForwardBatch {
        token_ids: positions
            .clone()
            .map(|position| position * 7 % 1000)
            .collect(),
        block_tables: vec![(0..positions.end.div_ceil(16)).map(BlockId).collect()],
        positions: positions.collect(),
        cu_seqlens: vec![0, num_tokens],
        logit_rows: (num_tokens - num_wanted..num_tokens).collect(),
        block_copies: Vec::new(),
    };
    let started = Instant::now();
    let logits = model.forward(&batch)?;
    std::hint::black_box(logits.row(0));
    Ok(started.elapsed())
}
