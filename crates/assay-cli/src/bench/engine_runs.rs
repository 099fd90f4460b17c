//! Timed requests to an engine: what a client would see.

use std::time::Instant;

use anyhow::{Context, Result};
use assay_engine::{
    EngineHandle, LogprobsMode, LogprobsParams, OutputEvent, PromptLogprobsParams, ReplyFormat,
    Request, RequestId, SamplingParams,
};

use super::model_runs::token_at;
use crate::channel::ChannelSink;

/// Seconds of scoring each token of a prompt but the first.
pub(super) fn score(engine: &EngineHandle, num_tokens: usize) -> Result<f64> {
    let request = Request {
        prompt_logprobs: Some(PromptLogprobsParams {
            first_position: 1,
            top_logprobs: 0,
        }),
        ..request(engine, num_tokens, 0, None)
    };
    let started = Instant::now();
    run(engine, request)?;
    Ok(started.elapsed().as_secs_f64())
}

/// Seconds of generating `num_tokens` greedily, with so many alternatives each or without scores.
pub(super) fn generate(
    engine: &EngineHandle,
    num_tokens: usize,
    top_logprobs: Option<u32>,
) -> Result<f64> {
    let request = request(engine, 1, num_tokens, top_logprobs);
    let started = Instant::now();
    run(engine, request)?;
    Ok(started.elapsed().as_secs_f64())
}

fn request(
    engine: &EngineHandle,
    num_prompt_tokens: usize,
    max_tokens: usize,
    top_logprobs: Option<u32>,
) -> Request {
    let vocab_size = engine.model_info().vocab_size;
    Request {
        id: RequestId(0),
        prompt_token_ids: (0..num_prompt_tokens)
            .map(|position| token_at(position, vocab_size))
            .collect(),
        cache_salt: None,
        num_choices: 1,
        max_tokens: u32::try_from(max_tokens).unwrap_or(u32::MAX),
        sampling: SamplingParams::greedy(),
        logprobs: top_logprobs.map(|top_logprobs| LogprobsParams {
            top_logprobs,
            mode: LogprobsMode::Raw,
            include_end: false,
        }),
        prompt_logprobs: None,
        named_token_ids: Vec::new(),
        constraint: None,
        format: ReplyFormat::default(),
        stop: Vec::new(),
        end_token_ids: Vec::new(),
    }
}

/// Runs a request to its end.
fn run(engine: &EngineHandle, request: Request) -> Result<()> {
    let (sink, events) = ChannelSink::new();
    engine.submit(request, Box::new(sink))?;
    loop {
        match events.recv().context("the engine stopped")? {
            OutputEvent::Finished { .. } => return Ok(()),
            OutputEvent::Failed(error) => return Err(error.into()),
            OutputEvent::Prompt { .. } | OutputEvent::Delta { .. } => {}
        }
    }
}
