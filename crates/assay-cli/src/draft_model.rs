//! A second model that guesses for the first: of the same vocabulary token by token, or it is refused.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use assay_engine::DraftModel;
use assay_formats::GgufFile;
use assay_kernels::cuda::Cuda;
use assay_kernels::{Compute, ThreadPool};
use assay_models::{LoadOptions, Model, ModelConfig as Hyperparameters, Stage};
use assay_tokenizer::Tokenizer;

use crate::config::ModelConfig;
use crate::load::num_kv_blocks;
use crate::progress;

/// Loads the model at `path` to draft for the one at `target_path`, whose tokenizer is `target`.
///
/// # Errors
/// If it cannot be read or run, or its tokens are not the target's; the message names the first that differs.
pub(crate) fn load(
    config: &ModelConfig,
    path: &Path,
    target_path: &Path,
    target: &Tokenizer,
    devices: &[Arc<Cuda>],
) -> Result<DraftModel> {
    let shown = path.display();
    let file = open(path, target)?;
    let hyperparameters = Hyperparameters::from_gguf(&file)?;
    // It guesses as far as it reaches.
    let longest = hyperparameters.max_position_embeddings;
    let weight_bytes = file.tensors().iter().map(|tensor| tensor.byte_len).sum();
    let bar = progress::bytes_bar("loading the draft model", 0);
    // It is small: whole, on the first device.
    let first = &devices[..devices.len().min(1)];
    let stages = Stage::split(hyperparameters.num_hidden_layers, first, None);
    let options = LoadOptions {
        context_length: config.context.map(|tokens| longest.min(tokens as usize)),
        num_kv_blocks: num_kv_blocks(config, &hyperparameters, &stages, weight_bytes),
        numerics: config.numerics,
        compute: Compute::new(config.isa, ThreadPool::new(config.threads)),
        progress: Some(&|progress| progress::follow_load(&bar, progress)),
        packed_cache: None,
    };
    let model = Model::load_staged(&file, hyperparameters, options, &stages);
    bar.finish_and_clear();
    let model = model.with_context(|| format!("--draft-model: cannot load {shown}"))?;
    Ok(DraftModel {
        model: Box::new(model),
        // A pass reads every weight once.
        relative_cost: file_bytes(path)? / file_bytes(target_path)?,
    })
}

/// The file at `path`, if it has the vocabulary of `target`.
///
/// # Errors
/// If it cannot be read, or has another; the message names the first token that differs.
pub(crate) fn open(path: &Path, target: &Tokenizer) -> Result<GgufFile> {
    let shown = path.display();
    let file =
        GgufFile::open(path).with_context(|| format!("--draft-model: cannot read {shown}"))?;
    let tokenizer = Tokenizer::from_metadata(file.metadata())
        .with_context(|| format!("--draft-model: the tokenizer of {shown}"))?;
    check_vocabulary(&tokenizer, target).with_context(|| {
        format!(
            "--draft-model {shown}: it must have the vocabulary of the model that it guesses for"
        )
    })?;
    Ok(file)
}

fn check_vocabulary(draft: &Tokenizer, target: &Tokenizer) -> Result<()> {
    let (num_draft, num_target) = (draft.vocab_size(), target.vocab_size());
    if num_draft != num_target {
        bail!("it has {num_draft} tokens, the model has {num_target}");
    }
    let ids = 0..u32::try_from(num_target).unwrap_or(u32::MAX);
    for id in ids {
        let (draft, target) = (draft.token_text(id), target.token_text(id));
        if draft != target {
            bail!(
                "token {id} is {:?} in it and {:?} in the model",
                draft.unwrap_or_default(),
                target.unwrap_or_default()
            );
        }
    }
    Ok(())
}

fn file_bytes(path: &Path) -> Result<f64> {
    let metadata = std::fs::metadata(path).with_context(|| path.display().to_string())?;
    // A real file is never empty here: its header was read.
    Ok(metadata.len().max(1) as f64)
}
