//! `assay bench`: how fast a model runs here, beside what the machine can do at most in the same minute.
//!
//! Quotes a figure only if the machine was quiet while it was taken: a rate measured beside a build is worth nothing.

mod busy;
mod engine_runs;
mod machine;
mod model_runs;
mod report;
mod samples;
mod work;

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use assay_engine::{Engine, EngineConfig, PrefixCache, Speculation, TokenBytes};
use assay_formats::GgufFile;
use assay_kernels::attention::KV_BLOCK_TOKENS;
use assay_kernels::probe::{ReadProbe, integer_peak};
use assay_kernels::{Compute, ThreadPool};
use assay_models::{ForwardModel, LoadOptions, Model, Numerics};
use clap::{Args, ValueEnum};

use crate::config::{BadSetting, Device, ModelConfig, WeightsArgs};
use crate::interrupt::Interrupt;
use crate::{load, progress, terminal};

use busy::BusyMeter;
pub(crate) use busy::MachineBusy;
use machine::Machine;
use report::{Ceilings, Report, Run};
use samples::Sampler;
use work::Work;

/// Bytes read for the memory's rate: several times the last cache of any machine of today.
const READ_BYTES: usize = 1 << 30;
/// How long the machine is looked at before anything is measured.
const LOOK: Duration = Duration::from_millis(500);
/// Alternatives with each token where their cost is measured.
const TOP_LOGPROBS: u32 = 20;

/// What to measure.
#[derive(Args, Clone, Debug)]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    model: WeightsArgs,
    /// Lengths of prompts, in tokens, separated by commas
    #[arg(long, value_name = "TOKENS", value_delimiter = ',', default_values = ["512", "2048"])]
    prompt: Vec<NonZeroUsize>,
    /// Tokens to generate
    #[arg(long = "gen", value_name = "TOKENS", default_value = "128")]
    generate: NonZeroUsize,
    /// Sequences that generate at once, separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', default_values = ["1", "8"])]
    batch: Vec<NonZeroUsize>,
    /// Numbers of threads, separated by commas [default: all cores]
    #[arg(long, value_name = "N", value_delimiter = ',', env = "ASSAY_THREADS")]
    threads: Vec<NonZeroUsize>,
    /// Measure only these, separated by commas
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    only: Vec<Figure>,
    /// Samples of each figure; the median is printed
    #[arg(long, value_name = "N", default_value = "5")]
    repeats: NonZeroUsize,
    /// Measure on a busy machine too, and mark what was disturbed
    #[arg(long)]
    force: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A kind of figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Figure {
    /// The machine's own limits
    Ceilings,
    /// Reading a prompt
    Prefill,
    /// Generating, one sequence or several at once
    Decode,
    /// Reading a prompt with the score of each token
    Score,
    /// What 20 alternatives with each generated token cost
    Top20,
}

impl BenchArgs {
    fn measures(&self, figure: Figure) -> bool {
        self.only.is_empty() || self.only.contains(&figure)
    }

    /// Longest prompt measured.
    fn longest_prompt(&self) -> usize {
        self.prompt.iter().map(|n| n.get()).max().unwrap_or(1)
    }

    fn largest_batch(&self) -> usize {
        self.batch.iter().map(|n| n.get()).max().unwrap_or(1)
    }

    /// Blocks for the longest prompt and for the largest batch.
    fn num_kv_blocks(&self) -> usize {
        let per_sequence = (self.generate.get() + 2).div_ceil(KV_BLOCK_TOKENS);
        let batch = per_sequence.saturating_mul(self.largest_batch());
        batch.max((self.longest_prompt() + 2).div_ceil(KV_BLOCK_TOKENS))
    }
}

/// Measures and prints.
///
/// # Errors
/// [`MachineBusy`] if others computed meanwhile and `--force` was not given; otherwise what keeps the model from running.
pub(crate) fn run(args: BenchArgs, interrupt: &Interrupt) -> Result<()> {
    let threads = args.threads.clone();
    let config = args.model.clone().resolve()?;
    let threads = if threads.is_empty() {
        vec![config.threads]
    } else {
        threads
    };
    if config.device != Device::Cpu {
        let fault = anyhow!("assay bench measures the CPU; leave --device out");
        return Err(BadSetting::from(fault).into());
    }
    let (_, path) = load::locate(&config, interrupt)?;
    let machine = Machine::read();
    if !args.force {
        busy::look(LOOK)?;
    }
    let mut report = Report::new(machine, &config, args.force);
    for num_threads in threads {
        report
            .runs
            .push(measure(&args, &config, &path, num_threads)?);
    }
    let mut out = terminal::stdout();
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&report)?)?;
    } else {
        report.write_text(&mut out)?;
    }
    out.flush()?;
    match report.num_not_quoted() {
        0 => Ok(()),
        _ if args.force => Ok(()),
        num_figures => Err(MachineBusy::during(num_figures).into()),
    }
}

/// All figures of one number of threads.
fn measure(
    args: &BenchArgs,
    config: &ModelConfig,
    path: &Path,
    num_threads: NonZeroUsize,
) -> Result<Run> {
    let shown = path.display();
    let file = GgufFile::open(path).with_context(|| format!("cannot read {shown}"))?;
    let bar = progress::bytes_bar("loading", 0);
    let mut model = Model::load(
        &file,
        LoadOptions {
            context_length: None,
            num_kv_blocks: args.num_kv_blocks(),
            numerics: config.numerics,
            compute: Compute::new(config.isa, ThreadPool::new(num_threads)),
            packed_cache: None,
            progress: Some(&|progress| progress::follow_load(&bar, progress)),
        },
    )
    .with_context(|| format!("cannot load {shown}"))?;
    bar.finish_and_clear();
    let limit = model.info().context_length;
    for (flag, num_tokens) in [
        ("--prompt", args.longest_prompt()),
        ("--gen", args.generate.get() + 2),
    ] {
        if num_tokens > limit {
            bail!("{flag}: {num_tokens} tokens, and {limit} are the most that {shown} reads");
        }
    }
    let work = Work::of(&file, model.config(), config.isa.name(), config.numerics);
    let bar = progress::steps_bar("", args.num_steps() as u64);
    let mut sampler = Sampler::new(args.repeats.get(), args.force, &bar);

    let ceilings = if args.measures(Figure::Ceilings) {
        measure_ceilings(model.compute(), work.weight_bytes(), &mut sampler)?
    } else {
        Ceilings::default()
    };
    let mut run = Run::new(num_threads.get(), args.force, ceilings);
    if args.measures(Figure::Prefill) {
        for num_tokens in args.prompt.iter().map(|n| n.get()) {
            let name = format!("prefill {num_tokens}");
            let samples = sampler.sample(&name, || model_runs::prefill(&mut model, num_tokens))?;
            run.push(&name, num_tokens, samples, work.prefill(num_tokens));
        }
    }
    if args.measures(Figure::Decode) {
        for batch in args.batch.iter().map(|n| n.get()) {
            let num_steps = args.generate.get();
            let name = if batch == 1 {
                format!("decode {num_steps}")
            } else {
                format!("decode {num_steps} x {batch}")
            };
            let samples =
                sampler.sample(&name, || model_runs::decode(&mut model, num_steps, batch))?;
            run.push(
                &name,
                num_steps * batch,
                samples,
                work.decode(num_steps, batch),
            );
        }
    }
    // From here on the model belongs to an engine.
    let engine_config = EngineConfig {
        max_num_seqs: 1,
        // The same tokens are measured again and again.
        prefix_cache: PrefixCache::Off,
        // Drafts are for text that repeats itself; a rate without them is the rate of every text.
        speculation: Speculation::Off,
        ..EngineConfig::default()
    };
    let engine = Engine::spawn(Box::new(model), TokenBytes::default().into(), engine_config)?;
    if args.measures(Figure::Score) {
        for num_tokens in args.prompt.iter().map(|n| n.get()).filter(|n| *n > 1) {
            let name = format!("score {num_tokens}");
            let samples = sampler.sample(&name, || engine_runs::score(&engine, num_tokens))?;
            run.push(&name, num_tokens - 1, samples, work.score(num_tokens));
        }
    }
    if args.measures(Figure::Top20) {
        let num_tokens = args.generate.get();
        let cost = sampler.sample_pairs("top-20 log-probabilities", |with_top| {
            engine_runs::generate(&engine, num_tokens, with_top.then_some(TOP_LOGPROBS))
        })?;
        run.top20_cost = Some(cost);
    }
    bar.finish_and_clear();
    Ok(run)
}

fn measure_ceilings(
    cx: &Compute,
    weight_bytes: usize,
    sampler: &mut Sampler<'_>,
) -> Result<Ceilings> {
    let mut instruction = None;
    let integer = sampler.sample("integer peak", || {
        let peak = integer_peak(cx);
        instruction = peak.map(|peak| peak.instruction);
        // A rate as the seconds of one operation, so that all samples are times.
        Ok(peak.map_or(f64::INFINITY, |peak| 1.0 / peak.ops_per_second))
    })?;
    let mut read = |name, num_bytes| {
        let probe = ReadProbe::new(cx, num_bytes)
            .context("no memory to measure its rate with; leave out --only ceilings")?;
        sampler.sample(name, || Ok(1.0 / probe.bytes_per_second(cx)))
    };
    let memory = read("memory read", READ_BYTES)?;
    let weights = read("weights read", weight_bytes)?;
    Ok(Ceilings::new(instruction, &integer, &memory, &weights))
}

impl BenchArgs {
    /// Figures to measure, for the progress bar.
    fn num_steps(&self) -> usize {
        let counts = [
            (Figure::Ceilings, 3),
            (Figure::Prefill, self.prompt.len()),
            (Figure::Decode, self.batch.len()),
            (Figure::Score, self.prompt.len()),
            (Figure::Top20, 1),
        ];
        counts
            .into_iter()
            .filter(|(figure, _)| self.measures(*figure))
            .map(|(_, count)| count)
            .sum()
    }
}

/// `exact` or `fast`.
fn numerics_name(numerics: Numerics) -> &'static str {
    match numerics {
        Numerics::Exact => "exact",
        Numerics::Fast => "fast",
    }
}
