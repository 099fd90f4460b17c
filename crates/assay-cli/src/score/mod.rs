//! `assay score`: the log-probability of each token of a text, given the text before it. Raw f64 values; the same bits
//! on every machine, which is how bit-equality is seen from outside.

mod heat_map;
mod report;
mod source;

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::sync::mpsc;

use anyhow::{Context, Result, bail};
use assay_engine::{
    OutputEvent, PromptLogprobsParams, PromptToken, ReplyFormat, Request, RequestId, SamplingParams,
};
use assay_tokenizer::{EncodeOptions, SpecialText, SpecialTokens};
use clap::Args;

use crate::channel::ChannelSink;
use crate::config::ModelConfig;
use crate::interrupt::Interrupt;
use crate::load::{self, Loaded};
use crate::{progress, terminal};

use report::Report;

/// What to score, and how to print it.
#[derive(Args, Clone, Debug)]
pub(crate) struct ScoreArgs {
    /// The text: a file if there is one of that name, `-` for standard input, else the words themselves
    #[arg(long, value_name = "TEXT|FILE", allow_hyphen_values = true)]
    text: String,
    /// Print one JSON object, with the bits of each value
    #[arg(long)]
    json: bool,
    /// Also list the K most likely tokens at each place, at most 20
    #[arg(long, value_name = "K", default_value = "0", value_parser = clap::value_parser!(u32).range(0..=20))]
    top: u32,
    /// Write a heat map of the text to this file, a page that needs nothing beside it
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Scores a text and prints its tokens.
///
/// # Errors
/// If the text cannot be read or is longer than the context, or the model does not load.
pub(crate) fn run(mut config: ModelConfig, args: &ScoreArgs, interrupt: &Interrupt) -> Result<()> {
    let text = source::read(&args.text)?;
    // One sequence runs: room for one context is enough.
    config.parallel = std::num::NonZeroUsize::MIN;
    let loaded = load::load(&config, 1, interrupt)?;
    let token_ids = tokenize(&loaded, &text.text)?;
    let scored = score(&loaded, &token_ids, args.top)?;
    let report = Report::new(&loaded, &config, &text.name, &token_ids, &scored);
    if let Some(path) = &args.html {
        let page = heat_map::page(&report);
        interrupt
            .whole(|| fs::write(path, page))
            .with_context(|| format!("--html: cannot write {}", path.display()))?;
    }
    let mut out = terminal::stdout();
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&report)?)?;
    } else {
        report.write_text(&mut out)?;
    }
    Ok(())
}

/// The text's tokens, with the beginning token where the model has one. Words that look like a control token stay words.
fn tokenize(loaded: &Loaded, text: &str) -> Result<Vec<u32>> {
    let token_ids = loaded.tokenizer.encode(
        text,
        EncodeOptions {
            add_special: SpecialTokens::Add,
            parse_special: SpecialText::Literal,
        },
    )?;
    if token_ids.is_empty() {
        bail!("--text is empty: there is nothing to score");
    }
    let limit = loaded.engine.max_sequence_tokens();
    if token_ids.len() > limit {
        bail!(
            "the text has {} tokens, and {limit} fit: score it in parts, or raise --context or --kv-memory where they \
             are set below the model's own limit",
            token_ids.len()
        );
    }
    Ok(token_ids)
}

/// Scores of tokens 1.. ; none for a single token, which nothing stands before.
fn score(loaded: &Loaded, token_ids: &[u32], top_logprobs: u32) -> Result<Vec<PromptToken>> {
    let num_scored = token_ids.len() - 1;
    if num_scored == 0 {
        return Ok(Vec::new());
    }
    let (sink, events) = ChannelSink::new();
    let request = Request {
        id: RequestId(0),
        prompt_token_ids: token_ids.to_vec(),
        cache_salt: None,
        num_choices: 1,
        max_tokens: 0,
        sampling: SamplingParams::greedy(),
        logprobs: None,
        prompt_logprobs: Some(PromptLogprobsParams {
            first_position: 1,
            top_logprobs,
        }),
        named_token_ids: Vec::new(),
        constraint: None,
        format: ReplyFormat::default(),
        stop: Vec::new(),
        end_token_ids: Vec::new(),
    };
    loaded.engine.submit(request, Box::new(sink))?;
    collect(&events, num_scored)
}

fn collect(events: &mpsc::Receiver<OutputEvent>, num_scored: usize) -> Result<Vec<PromptToken>> {
    let bar = progress::tokens_bar("scoring", num_scored as u64);
    let mut scored = Vec::with_capacity(num_scored);
    loop {
        match events.recv().context("the engine stopped")? {
            OutputEvent::Prompt { tokens } => {
                scored.extend(tokens);
                bar.set_position(scored.len() as u64);
            }
            OutputEvent::Finished { .. } => break,
            OutputEvent::Failed(error) => return Err(error.into()),
            // Nothing is generated.
            OutputEvent::Delta { .. } => {}
        }
    }
    bar.finish_and_clear();
    Ok(scored)
}
