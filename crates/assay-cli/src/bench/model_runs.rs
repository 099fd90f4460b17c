//! Timed passes of a model alone. The tokens are arbitrary: how long a pass takes does not depend on them.

use std::hint::black_box;
use std::ops::Range;
use std::time::Instant;

use anyhow::Result;
use assay_engine::EngineConfig;
use assay_kernels::attention::KV_BLOCK_TOKENS;
use assay_models::{BlockId, ForwardBatch, ForwardModel, Model, TokenId};

/// The token at a position of every sequence measured here.
pub(super) fn token_at(position: usize, vocab_size: usize) -> TokenId {
    // Any id does; small ones exist in every vocabulary.
    (position * 7 % vocab_size.min(1000)) as TokenId
}

/// Seconds of reading a prompt, in steps as large as the engine's.
pub(super) fn prefill(model: &mut Model, num_tokens: usize) -> Result<f64> {
    let step = EngineConfig::default().max_num_batched_tokens;
    let started = Instant::now();
    let mut begin = 0;
    while begin < num_tokens {
        let end = num_tokens.min(begin + step);
        pass(model, begin..end, 1, end == num_tokens)?;
        begin = end;
    }
    Ok(started.elapsed().as_secs_f64())
}

/// Seconds of `num_steps` steps that each give one more token to each of `batch` sequences.
pub(super) fn decode(model: &mut Model, num_steps: usize, batch: usize) -> Result<f64> {
    pass(model, 0..1, batch, false)?;
    let started = Instant::now();
    for position in 1..=num_steps {
        pass(model, position..position + 1, batch, true)?;
    }
    Ok(started.elapsed().as_secs_f64())
}

/// Runs the tokens at `positions` of `batch` sequences.
fn pass(
    model: &mut Model,
    positions: Range<usize>,
    batch: usize,
    wants_logits: bool,
) -> Result<()> {
    let vocab_size = model.info().vocab_size;
    let num_blocks = positions.end.div_ceil(KV_BLOCK_TOKENS) as u32;
    // Room for the whole sequence lies between two sequences' first blocks.
    let stride = (model.info().num_kv_blocks / batch) as u32;
    let mut forward = ForwardBatch {
        cu_seqlens: vec![0],
        ..ForwardBatch::default()
    };
    for sequence in 0..batch as u32 {
        for position in positions.clone() {
            forward.token_ids.push(token_at(position, vocab_size));
            forward.positions.push(position as u32);
        }
        let first = sequence * stride;
        let blocks = first..first + num_blocks;
        forward.block_tables.push(blocks.map(BlockId).collect());
        let num_rows = forward.token_ids.len() as u32;
        forward.cu_seqlens.push(num_rows);
        if wants_logits {
            forward.logit_rows.push(num_rows - 1);
        }
    }
    black_box(model.forward(&forward)?);
    Ok(())
}
