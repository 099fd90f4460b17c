//! Measures what drafts do to decoding: the same requests to two engines over the same file, one with prompt lookup
//! and one without, in turns. Both must give the same tokens and log-probability bits.
//!
//! `cargo run --release -p assay-engine --example speculation -- MODEL.gguf [THREADS] [ROUNDS] [TEMPERATURE]`

mod prompts;

use std::collections::BTreeMap;
use std::error::Error;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use assay_engine::{
    Engine, EngineConfig, EngineHandle, Gone, LogprobsMode, LogprobsParams, OutputEvent,
    OutputSink, ReplyFormat, Request, RequestId, SamplingParams, Speculation, TokenBytes,
};
use assay_formats::GgufFile;
use assay_kernels::{Compute, Isa, ThreadPool};
use assay_models::{LoadOptions, Model, Numerics};
use assay_tokenizer::{
    ChatTemplate, EncodeOptions, RenderOptions, SpecialText, SpecialTokens, TemplateTokens,
    Tokenizer,
};
use prompts::{KINDS, PROMPTS};

const MAX_TOKENS: u32 = 160;

/// Sends each event with the time it came.
struct TimedSink(Sender<(Instant, OutputEvent)>);

impl OutputSink for TimedSink {
    fn send(&mut self, event: OutputEvent) -> Result<(), Gone> {
        self.0.send((Instant::now(), event)).map_err(|_| Gone)
    }

    fn is_gone(&self) -> bool {
        false
    }
}

/// One reply: ids with the bits of their log-probabilities, and how long it took from the first token to the last.
struct Reply {
    bits: Vec<(u32, u64)>,
    decode: Duration,
}

#[expect(clippy::print_stdout, reason = "the figures are the point")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: speculation MODEL.gguf [THREADS] [ROUNDS] [TEMPERATURE]";
    let path = arguments.next().ok_or(usage)?;
    let num_threads: NonZeroUsize = match arguments.next() {
        Some(number) => number.parse()?,
        None => std::thread::available_parallelism()?,
    };
    let num_rounds: usize = arguments.next().map_or(Ok(5), |number| number.parse())?;
    let temperature: f64 = arguments.next().map_or(Ok(0.0), |number| number.parse())?;

    let file = GgufFile::open(Path::new(&path))?;
    let tokenizer = Tokenizer::from_metadata(file.metadata())?;
    let source = tokenizer
        .chat_template_source()
        .ok_or("the file has no chat template")?;
    let template = ChatTemplate::new(source, TemplateTokens::of(&tokenizer))?;
    let plain = spawn(&file, &tokenizer, num_threads, Speculation::Off)?;
    let drafting = spawn(&file, &tokenizer, num_threads, Speculation::Ngram)?;

    println!("{path}, {num_threads} threads, temperature {temperature}, medians of {num_rounds}");
    for (kind, name) in KINDS {
        // Sums over the kind's prompts: tokens, then seconds without and with drafts.
        let (mut num_tokens, mut sums) = (0, [0.0; 2]);
        let before = drafting.stats();
        for (_, prompt) in PROMPTS.iter().filter(|(of, _)| *of == kind) {
            let request = request(&tokenizer, &template, prompt, temperature)?;
            let mut times: BTreeMap<usize, Vec<Duration>> = BTreeMap::new();
            for _ in 0..num_rounds {
                let replies = [&plain, &drafting].map(|engine| reply(engine, request.clone()));
                let [without, with] = replies;
                let (without, with) = (without?, with?);
                if without.bits != with.bits {
                    return Err(format!("drafts changed the reply to: {prompt}").into());
                }
                num_tokens += without.bits.len().saturating_sub(1);
                times.entry(0).or_default().push(without.decode);
                times.entry(1).or_default().push(with.decode);
            }
            for (index, mut times) in times {
                times.sort_unstable();
                sums[index] += times[times.len() / 2].as_secs_f64();
            }
        }
        let after = drafting.stats();
        let num_tokens = (num_tokens / num_rounds) as f64;
        let num_drafted = after.num_draft_tokens - before.num_draft_tokens;
        let num_accepted = after.num_accepted_tokens - before.num_accepted_tokens;
        println!(
            "{name:<13} {:7.1} tokens/s without, {:7.1} with drafts: {:5.2}x; {num_accepted} of {num_drafted} draft \
             tokens accepted, {:.2} tokens a reply token",
            num_tokens / sums[0],
            num_tokens / sums[1],
            sums[0] / sums[1],
            num_drafted as f64 / (num_tokens * num_rounds as f64),
        );
    }
    Ok(())
}

fn spawn(
    file: &GgufFile,
    tokenizer: &Tokenizer,
    num_threads: NonZeroUsize,
    speculation: Speculation,
) -> Result<EngineHandle, Box<dyn Error>> {
    let options = LoadOptions {
        context_length: Some(2_048),
        num_kv_blocks: 128,
        numerics: Numerics::Exact,
        compute: Compute::new(Isa::detect(), ThreadPool::new(num_threads)),
        progress: None,
        packed_cache: None,
    };
    let config = EngineConfig {
        speculation,
        ..EngineConfig::default()
    };
    let model = Model::load(file, options)?;
    let token_bytes = Arc::new(TokenBytes::from(tokenizer));
    Ok(Engine::spawn(Box::new(model), token_bytes, config)?)
}

fn request(
    tokenizer: &Tokenizer,
    template: &ChatTemplate,
    prompt: &str,
    temperature: f64,
) -> Result<Request, Box<dyn Error>> {
    let messages = serde_json::json!([{"role": "user", "content": prompt}]);
    let text = template.render(&messages, &RenderOptions::default())?;
    let options = EncodeOptions {
        add_special: SpecialTokens::Omit,
        parse_special: SpecialText::Parse,
    };
    Ok(Request {
        id: RequestId(0),
        prompt_token_ids: tokenizer.encode(&text, options)?,
        cache_salt: None,
        num_choices: 1,
        max_tokens: MAX_TOKENS,
        sampling: SamplingParams {
            temperature,
            seed: 7,
            ..SamplingParams::greedy()
        },
        logprobs: Some(LogprobsParams {
            top_logprobs: 5,
            mode: LogprobsMode::Raw,
            include_end: true,
        }),
        prompt_logprobs: None,
        named_token_ids: Vec::new(),
        constraint: None,
        format: ReplyFormat::default(),
        stop: Vec::new(),
        end_token_ids: tokenizer.end_token_ids().to_vec(),
    })
}

fn reply(engine: &EngineHandle, request: Request) -> Result<Reply, Box<dyn Error>> {
    let (sender, events) = channel();
    engine.submit(request, Box::new(TimedSink(sender)))?;
    collect(&events)
}

fn collect(events: &Receiver<(Instant, OutputEvent)>) -> Result<Reply, Box<dyn Error>> {
    let mut bits = Vec::new();
    let mut first = None;
    loop {
        let (at, event) = events.recv()?;
        let outputs = match event {
            OutputEvent::Delta { entries, .. } => {
                entries.into_iter().map(|entry| entry.output).collect()
            }
            OutputEvent::Finished { end, .. } => {
                bits.extend(end.into_iter().map(|output| bits_of(&output)));
                return Ok(Reply {
                    bits,
                    decode: at - first.unwrap_or(at),
                });
            }
            OutputEvent::Prompt { .. } => Vec::new(),
            OutputEvent::Failed(error) => return Err(error.into()),
        };
        first.get_or_insert(at);
        bits.extend(outputs.iter().map(bits_of));
    }
}

fn bits_of(output: &assay_engine::TokenOutput) -> (u32, u64) {
    let logprob = output.logprobs.as_ref().map(|scores| scores.logprob);
    (output.token_id, logprob.map_or(0, f64::to_bits))
}
