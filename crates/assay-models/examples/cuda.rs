//! Runs a CUDA device against the CPU: golden cases, then whole models, bit for bit, with times.
//!
//! `cargo run --release -p assay-models --example cuda -- [--kernels FATBIN] [--devices 0,1] [--gpu-layers N] [MODEL.gguf…]`
//!
//! Each model gets a prompt of 1,000 tokens whose every row of logits is hashed, then 64 greedy tokens, on both; the
//! device then runs prefill and decode alone: decode with the most likely id read, as greedy sampling does, with the
//! normaliser and 20 ids beside it, and with the whole row. Fails when a hash differs.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_formats::GgufFile;
use assay_kernels::cuda::Cuda;
use assay_kernels::{Compute, Isa, ThreadPool};
use assay_models::{
    BlockId, ForwardBatch, ForwardModel, LoadOptions, Model, ModelConfig, Numerics, Stage,
};

const PROMPT_TOKENS: u32 = 1_000;
const GREEDY_TOKENS: u32 = 64;
const PREFILL_TOKENS: [u32; 3] = [64, 512, 2048];
const DECODE_TOKENS: u32 = 128;
const RUNS: usize = 3;

#[expect(clippy::print_stdout, reason = "the figures are the point")]
fn main() -> Result<(), Box<dyn Error>> {
    let started = Instant::now();
    let mut differing = 0;
    let mut paths: Vec<String> = std::env::args().skip(1).collect();
    let (mut fatbin, mut ordinals, mut gpu_layers) = (None, vec![0], None);
    while paths.len() > 1 && paths[0].starts_with("--") {
        let value = &paths[1];
        match paths[0].as_str() {
            "--kernels" => fatbin = Some(std::fs::read(value)?),
            "--devices" => {
                let parsed: Result<_, _> = value.split(',').map(str::parse).collect();
                ordinals = parsed?;
            }
            "--gpu-layers" => gpu_layers = Some(value.parse()?),
            other => return Err(format!("{other} is no option").into()),
        }
        paths.drain(..2);
    }
    let (cuda, cases) = Cuda::open_with_report(ordinals[0], fatbin.as_deref())?;
    let others = ordinals[1..].iter().map(|&ordinal| Cuda::open(ordinal));
    let devices: Result<Vec<_>, _> = std::iter::once(Ok(Arc::clone(&cuda)))
        .chain(others)
        .collect();
    let devices = devices?;
    println!("{}, opened in {:.0} ms", cuda.name(), ms(started.elapsed()));
    for (case, verdict) in &cases {
        if !verdict.agrees() {
            println!("case {case}: {verdict:?}");
            differing += 1;
        }
    }
    println!(
        "{} golden cases, {differing} without the recorded bits",
        cases.len()
    );
    cuda.check()?;
    for path in &paths {
        differing += usize::from(!compare(&devices, gpu_layers, Path::new(path))?);
    }
    match differing {
        0 => Ok(()),
        _ => Err("the device's bits differ from the CPU's".into()),
    }
}

/// Whether both give the same bits.
#[expect(clippy::print_stdout, reason = "the figures are the point")]
fn compare(
    devices: &[Arc<Cuda>],
    gpu_layers: Option<usize>,
    path: &Path,
) -> Result<bool, Box<dyn Error>> {
    let file = GgufFile::open(path)?;
    let config = ModelConfig::from_gguf(&file)?;
    let options = || -> Result<LoadOptions<'static>, Box<dyn Error>> {
        let threads = std::thread::available_parallelism()?;
        Ok(LoadOptions {
            context_length: None,
            num_kv_blocks: 192,
            numerics: Numerics::Exact,
            compute: Compute::new(Isa::detect(), ThreadPool::new(threads)),
            progress: None,
            packed_cache: None,
        })
    };
    let started = Instant::now();
    let stages = Stage::split(config.num_hidden_layers, devices, gpu_layers);
    let mut device = Model::load_staged(&file, config.clone(), options()?, &stages)?;
    println!(
        "{}: loaded in {:.0} ms",
        path.display(),
        ms(started.elapsed())
    );
    let on_device = hashes(&mut device)?;
    println!("  CUDA {on_device:?}");
    for cuda in devices {
        cuda.check()?;
    }
    let context = device.info().context_length as u32;
    for num_tokens in PREFILL_TOKENS.into_iter().filter(|&n| n <= context) {
        let time = best(|| pass(&mut device, 0..num_tokens))?;
        let rate = f64::from(num_tokens) / time.as_secs_f64();
        println!("  prefill {num_tokens:<5} {rate:10.1} tokens/s");
    }
    let positions = 512.min(context / 2)..(512 + DECODE_TOKENS).min(context);
    for (what, wanted) in [
        ("decode", Wanted::Best),
        ("decode, 20 logprobs", Wanted::Logprobs),
        ("decode, whole rows", Wanted::Row),
    ] {
        let time = best(|| {
            let each = positions.clone();
            each.map(|position| read_pass(&mut device, position..position + 1, wanted))
                .sum()
        })?;
        let rate = positions.len() as f64 / time.as_secs_f64();
        println!("  {what:<20} {rate:10.1} tokens/s");
    }
    drop(device);
    let mut host = Model::load_configured(&file, config, options()?)?;
    let on_host = hashes(&mut host)?;
    println!("  CPU  {on_host:?}");
    println!(
        "  {}",
        if on_host == on_device {
            "same bits"
        } else {
            "DIFFERENT BITS"
        }
    );
    Ok(on_host == on_device)
}

/// Hash of every row of a prompt's logits, and of those of the greedy tokens after it, with their ids.
fn hashes(model: &mut Model) -> Result<[String; 2], Box<dyn Error>> {
    let mut hasher = blake3::Hasher::new();
    let mut next = 0;
    let prompt_tokens = PROMPT_TOKENS.min(model.info().context_length as u32 - GREEDY_TOKENS);
    for chunk in (0..prompt_tokens).step_by(250) {
        let ids =
            (chunk..prompt_tokens.min(chunk + 250)).map(|position| prompt_token(model, position));
        let ids = ids.collect();
        next = rows(model, ids, chunk, &mut hasher)?;
    }
    let prompt = hasher.finalize();
    let mut hasher = blake3::Hasher::new();
    for position in prompt_tokens..prompt_tokens + GREEDY_TOKENS {
        next = rows(model, vec![next], position, &mut hasher)?;
    }
    let short = |hash: blake3::Hash| hash.to_hex()[..16].to_owned();
    Ok([short(prompt), short(hasher.finalize())])
}

/// Runs `token_ids` from `position` on, hashes their rows, and returns the last row's best id.
fn rows(
    model: &mut Model,
    token_ids: Vec<u32>,
    position: u32,
    hasher: &mut blake3::Hasher,
) -> Result<u32, Box<dyn Error>> {
    let end = position + token_ids.len() as u32;
    let logits = model.forward(&batch(token_ids, position..end, end - position))?;
    for row in 0..logits.num_rows() {
        let bytes: Vec<u8> = logits
            .row(row)
            .iter()
            .flat_map(|x| x.to_le_bytes())
            .collect();
        hasher.update(&bytes);
    }
    let last = logits.top_k(model.compute(), logits.num_rows() - 1, 1)?;
    Ok(last.first().ok_or("no logits")?.0)
}

/// Any token of the vocabulary.
fn prompt_token(model: &Model, position: u32) -> u32 {
    position * 7 % (model.info().vocab_size.min(1000) as u32)
}

fn batch(token_ids: Vec<u32>, positions: std::ops::Range<u32>, num_wanted: u32) -> ForwardBatch {
    let num_tokens = positions.end - positions.start;
    ForwardBatch {
        token_ids,
        // Backwards, so that no table is in the order of memory.
        block_tables: vec![
            (0..positions.end.div_ceil(16))
                .map(|b| BlockId(191 - b))
                .collect(),
        ],
        positions: positions.collect(),
        cu_seqlens: vec![0, num_tokens],
        logit_rows: (num_tokens - num_wanted..num_tokens).collect(),
        block_copies: Vec::new(),
    }
}

/// What is read of a pass's last row.
#[derive(Clone, Copy)]
enum Wanted {
    /// The most likely id.
    Best,
    /// The normaliser and 20 ids.
    Logprobs,
    /// All of it.
    Row,
}

fn pass(model: &mut Model, positions: std::ops::Range<u32>) -> Result<Duration, Box<dyn Error>> {
    read_pass(model, positions, Wanted::Row)
}

fn read_pass(
    model: &mut Model,
    positions: std::ops::Range<u32>,
    wanted: Wanted,
) -> Result<Duration, Box<dyn Error>> {
    let token_ids = positions.clone();
    let token_ids = token_ids.map(|p| prompt_token(model, p)).collect();
    let batch = batch(token_ids, positions, 1);
    let started = Instant::now();
    let logits = model.forward(&batch)?;
    let cx = model.compute();
    match wanted {
        Wanted::Best => drop(std::hint::black_box(logits.top_k(cx, 0, 1)?)),
        Wanted::Logprobs => {
            let normaliser = logits.log_sum_exp(cx, 0)?;
            let best = logits.top_k(cx, 0, 20)?;
            let scores = best.iter().map(|&(_, logit)| normaliser.logprob(logit));
            std::hint::black_box(scores.sum::<f64>());
        }
        Wanted::Row => drop(std::hint::black_box(logits.row(0).to_vec())),
    }
    Ok(started.elapsed())
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

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
