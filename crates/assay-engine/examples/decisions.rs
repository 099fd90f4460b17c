//! Times decisions on a GGUF file: a cached state of 824 tokens, 35 new ones a question, labels with their terminators.
//!
//! `cargo run --release -p assay-engine --example decisions -- MODEL.gguf [exact|fast] [THREADS]`
//!
//! The tokens are arbitrary: how long a decision takes does not depend on them.

use std::error::Error;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use assay_engine::decision::{
    DEFAULT_MAX_TRIE_EDGES, DecisionReading, DecisionRequest, DecisionSink, LabelQuestion,
};
use assay_engine::{
    Engine, EngineConfig, EngineHandle, PrefixCache, RequestError, Speculation, TokenBytes,
};
use assay_formats::GgufFile;
use assay_kernels::log_softmax::log_sum_exp;
use assay_kernels::{Compute, Isa, ThreadPool};
use assay_models::{LoadOptions, Model, Numerics, TokenId};
use assay_tokenizer::Tokenizer;

const STATE_TOKENS: u32 = 824;
const QUESTION_TOKENS: u32 = 35;
/// Decisions of one measurement.
const NUM_DECISIONS: u32 = 96;
/// Questions over one state in one request.
const NUM_QUESTIONS: u32 = 20;
/// Rows of one measurement of sums.
const NUM_ROWS: u32 = 200;

type Outcome = Result<DecisionReading, RequestError>;

struct Sink(Sender<Outcome>);

impl DecisionSink for Sink {
    fn send(&mut self, outcome: Outcome) {
        // Whoever hung up wants no word.
        let _ = self.0.send(outcome);
    }

    fn is_gone(&self) -> bool {
        false
    }
}

#[expect(clippy::print_stdout, reason = "the figures are the point")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments
        .next()
        .ok_or("usage: decisions MODEL.gguf [exact|fast] [THREADS]")?;
    let numerics = match arguments.next().as_deref() {
        None | Some("exact") => Numerics::Exact,
        Some("fast") => Numerics::Fast,
        Some(other) => return Err(format!("{other}: neither exact nor fast").into()),
    };
    let num_threads: NonZeroUsize = match arguments.next() {
        Some(number) => number.parse()?,
        None => std::thread::available_parallelism()?,
    };
    let bench = Bench {
        file: GgufFile::open(Path::new(&path))?,
        numerics,
        num_threads,
    };

    let engine = bench.engine(PrefixCache::On)?;
    let info = engine.model_info();
    println!("{}, {numerics:?}, {num_threads} threads", info.name);
    let short = short_labels();
    wait(&ask(&engine, vec![question(0, &short)])?)?;
    for num_together in [1, 2, 4, 8] {
        let rate = decisions_a_second(&engine, num_together, &short)?;
        println!("2 labels of 1 token, {num_together} at once    {rate:8.1} decisions/s");
    }
    let long: Vec<Vec<TokenId>> = (0..8)
        .map(|label| vec![200 + label, 300, 400 + label])
        .collect();
    for num_together in [1, 8] {
        let rate = decisions_a_second(&engine, num_together, &long)?;
        println!("8 labels of 3 tokens, {num_together} at once   {rate:8.1} decisions/s");
    }

    let (seconds, num_rows) = bench.cold(&[all_questions(&short)])?;
    println!("20 questions in one request        {seconds:8.3} s, {num_rows} rows");
    let apart: Vec<_> = all_questions(&short)
        .into_iter()
        .map(|one| vec![one])
        .collect();
    let (seconds, num_rows) = bench.cold(&apart)?;
    println!("20 requests without a prefix cache {seconds:8.3} s, {num_rows} rows");

    let row: Vec<f32> = (0..info.vocab_size)
        .map(|id| (id * 7919 % 1000) as f32 / 50.0)
        .collect();
    let compute = Compute::new(Isa::detect(), ThreadPool::new(num_threads));
    for (what, named) in [
        ("the whole row", &[][..]),
        ("all but 3 named ids", &[5, 1_000, 30_000]),
    ] {
        println!(
            "summing {what:20} {:8.1} µs a row",
            sum_micros(&compute, &row, named)
        );
    }
    Ok(())
}

struct Bench {
    file: GgufFile,
    numerics: Numerics,
    num_threads: NonZeroUsize,
}

impl Bench {
    fn engine(&self, prefix_cache: PrefixCache) -> Result<EngineHandle, Box<dyn Error>> {
        let tokenizer = Tokenizer::from_metadata(self.file.metadata())?;
        let options = LoadOptions {
            context_length: Some(2048),
            num_kv_blocks: 1024,
            numerics: self.numerics,
            compute: Compute::new(Isa::detect(), ThreadPool::new(self.num_threads)),
            progress: None,
            packed_cache: None,
        };
        let model = Model::load(&self.file, options)?;
        let config = EngineConfig {
            prefix_cache,
            speculation: Speculation::Off,
            ..EngineConfig::default()
        };
        let token_bytes = Arc::new(TokenBytes::from(&tokenizer));
        Ok(Engine::spawn(Box::new(model), token_bytes, config)?)
    }

    /// Seconds and rows that requests take on an engine without a prefix cache, one after the other.
    fn cold(&self, requests: &[Vec<LabelQuestion>]) -> Result<(f64, u64), Box<dyn Error>> {
        let engine = self.engine(PrefixCache::Off)?;
        let begin = Instant::now();
        for questions in requests {
            wait(&ask(&engine, questions.clone())?)?;
        }
        Ok((
            begin.elapsed().as_secs_f64(),
            engine.stats().num_computed_tokens,
        ))
    }
}

fn short_labels() -> Vec<Vec<TokenId>> {
    vec![vec![100], vec![101]]
}

/// The state, and question `index`'s own words behind it.
fn question(index: u32, labels: &[Vec<TokenId>]) -> LabelQuestion {
    let state = (0..STATE_TOKENS).map(|i| 1_000 + i * 37 % 9_000);
    let words = (0..QUESTION_TOKENS).map(|i| 1_000 + (index * 8_191 + i * 131 + index * i) % 9_000);
    LabelQuestion {
        prompt_token_ids: state.chain(words).collect(),
        labels: labels.to_vec(),
        end_token_ids: vec![2],
        healed_bytes: Vec::new(),
    }
}

fn all_questions(labels: &[Vec<TokenId>]) -> Vec<LabelQuestion> {
    (0..NUM_QUESTIONS)
        .map(|index| question(100_000 + index, labels))
        .collect()
}

fn ask(
    engine: &EngineHandle,
    questions: Vec<LabelQuestion>,
) -> Result<Receiver<Outcome>, Box<dyn Error>> {
    let (sender, receiver) = channel();
    let request = DecisionRequest {
        questions,
        cache_salt: None,
        max_trie_edges: DEFAULT_MAX_TRIE_EDGES,
    };
    engine.decide(request, Box::new(Sink(sender)))?;
    Ok(receiver)
}

fn wait(outcome: &Receiver<Outcome>) -> Result<DecisionReading, Box<dyn Error>> {
    Ok(outcome.recv()??)
}

/// Always `num_together` decisions under way, each a new question about the cached state.
fn decisions_a_second(
    engine: &EngineHandle,
    num_together: u32,
    labels: &[Vec<TokenId>],
) -> Result<f64, Box<dyn Error>> {
    // Questions of other measurements would come from the cache.
    let first = engine.stats().num_decisions as u32;
    let begin = Instant::now();
    let mut waiting = std::collections::VecDeque::new();
    for index in 0..NUM_DECISIONS {
        waiting.push_back(ask(engine, vec![question(first + index, labels)])?);
        if waiting.len() >= num_together as usize
            && let Some(oldest) = waiting.pop_front()
        {
            let reading = wait(&oldest)?;
            let num_new = reading.prompt_tokens - reading.cached_tokens;
            if num_new != QUESTION_TOKENS {
                return Err(format!("{num_new} new tokens, not {QUESTION_TOKENS}").into());
            }
        }
    }
    for outcome in &waiting {
        wait(outcome)?;
    }
    Ok(f64::from(NUM_DECISIONS) / begin.elapsed().as_secs_f64())
}

/// Sums a row, or the stretches of it between named ids.
fn sum_micros(compute: &Compute, row: &[f32], named: &[usize]) -> f64 {
    let begin = Instant::now();
    for _ in 0..NUM_ROWS {
        let mut start = 0;
        for &end in named.iter().chain([&row.len()]) {
            let sum = log_sum_exp(compute, &row[start..end]);
            std::hint::black_box(sum.is_ok());
            start = end + 1;
        }
    }
    begin.elapsed().as_secs_f64() * 1e6 / f64::from(NUM_ROWS)
}
