//! Loading a file into a model, and the door that the engine calls.
//!
//! [`Model::load`] checks everything before it takes memory for weights; [`ForwardModel::forward`] checks a batch
//! before it writes to the cache.

use std::ops::Range;
use std::sync::Arc;

use assay_formats::GgufFile;
use assay_kernels::Compute;
use assay_kernels::attention::KV_BLOCK_TOKENS;
use assay_kernels::cuda::Cuda;
use assay_kernels::quantize::ActivationProfile;

use crate::arch;
use crate::backend::{Backend, CudaBackend};
use crate::config::ModelConfig;
use crate::error::ModelError;
use crate::forward::{ForwardBatch, ForwardError, ForwardModel, Logits, ModelInfo};
use crate::kv_cache::KvCache;
use crate::packed_cache::PackedCache;
use crate::runner::{Run, Runner};
use crate::split::{Part, Split, Stage};
use crate::weights::{ProgressFn, WeightLoader};

/// Precision of the activations; part of what a result is (`docs/numerics.md`, section 1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Numerics {
    /// 16-bit integers: log-probabilities within about 0.001 nats of f32 on the same weights.
    #[default]
    Exact,
    /// 8-bit integers inside the layers, 16-bit into the head.
    Fast,
}

/// How to load a model.
pub struct LoadOptions<'a> {
    /// Longest sequence in tokens, at most the model's own; the model's own where `None`. Either way no longer than
    /// the KV blocks hold.
    pub context_length: Option<usize>,
    /// KV blocks of 16 tokens, shared by all sequences; at least 1.
    pub num_kv_blocks: usize,
    /// Precision of the activations.
    pub numerics: Numerics,
    /// Instruction set and threads.
    pub compute: Compute,
    /// Called after each matrix.
    pub progress: Option<ProgressFn<'a>>,
    /// Where packed matrices are kept between starts, if they are.
    pub packed_cache: Option<PackedCache<'a>>,
}

/// A loaded model with its KV cache.
#[derive(Debug)]
pub struct Model {
    info: ModelInfo,
    config: ModelConfig,
    runner: Box<dyn Run>,
}

impl Model {
    /// Loads the weights of `file`; the file is not needed afterwards.
    ///
    /// # Errors
    /// [`ModelError`]: it names the key, the tensors or the option at fault.
    pub fn load(file: &GgufFile, options: LoadOptions<'_>) -> Result<Self, ModelError> {
        Self::load_configured(file, ModelConfig::from_gguf(file)?, options)
    }

    /// As [`Model::load`], for a caller that has read the hyperparameters of `file` already.
    ///
    /// # Errors
    /// As [`Model::load`].
    pub fn load_configured(
        file: &GgufFile,
        config: ModelConfig,
        options: LoadOptions<'_>,
    ) -> Result<Self, ModelError> {
        let layers = 0..config.num_hidden_layers;
        let cuda = None;
        Self::load_staged(file, config, options, &[Stage { layers, cuda }])
    }

    /// As [`Model::load_configured`], with weights, cache and passes on a CUDA device; `options.compute` packs for it and
    /// reads its logits. The bits are the CPU's.
    ///
    /// # Errors
    /// As [`Model::load`], and [`ModelError::Cuda`] or [`ModelError::FastOnCuda`].
    pub fn load_on_cuda(
        file: &GgufFile,
        config: ModelConfig,
        options: LoadOptions<'_>,
        cuda: Arc<Cuda>,
    ) -> Result<Self, ModelError> {
        let layers = 0..config.num_hidden_layers;
        let cuda = Some(cuda);
        Self::load_staged(file, config, options, &[Stage { layers, cuda }])
    }

    /// As [`Model::load_configured`], with layers, their weights and their part of the cache where `stages` says.
    ///
    /// # Errors
    /// As [`Model::load_on_cuda`].
    ///
    /// # Panics
    /// If the stages are not all layers in order.
    pub fn load_staged(
        file: &GgufFile,
        config: ModelConfig,
        mut options: LoadOptions<'_>,
        stages: &[Stage],
    ) -> Result<Self, ModelError> {
        let num_layers = config.num_hidden_layers;
        let mut end = 0;
        for stage in stages {
            assert_eq!(stage.layers.start, end, "stages follow each other");
            end = stage.layers.end;
        }
        assert_eq!(end, num_layers, "stages of all layers");
        if options.numerics == Numerics::Fast && stages.iter().any(|stage| stage.cuda.is_some()) {
            return Err(ModelError::FastOnCuda);
        }
        if stages.len() > 1 {
            // It holds the matrices of a whole model.
            options.packed_cache = None;
        }
        let context_length = context_length(&config, &options)?;
        let info = model_info(&config, &options, context_length, stages);
        let mut parts: Vec<Box<dyn Run>> = Vec::new();
        for stage in stages {
            let part = Part {
                layers: stage.layers.clone(),
                num_layers,
            };
            let host = options.compute.clone();
            parts.push(match &stage.cuda {
                Some(cuda) => {
                    let backend = CudaBackend::new(Arc::clone(cuda), host);
                    build(file, &config, &options, context_length, backend, part)?
                }
                None => build(file, &config, &options, context_length, host, part)?,
            });
        }
        let last = parts
            .pop()
            .expect("a model has layers, so there is a stage");
        let runner = match parts.is_empty() {
            true => last,
            false => Box::new(Split::new(parts, last)),
        };
        Ok(Self {
            info,
            config,
            runner,
        })
    }

    /// The file's hyperparameters.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }
}

/// Facts about a model that is loaded so.
fn model_info(
    config: &ModelConfig,
    options: &LoadOptions<'_>,
    context_length: usize,
    stages: &[Stage],
) -> ModelInfo {
    let rows_at_once = |stage: &Stage| match stage.cuda {
        Some(_) => 1,
        None => options.compute.rows_at_once(),
    };
    ModelInfo {
        architecture: config.architecture.name().to_owned(),
        name: config.name.clone(),
        vocab_size: config.vocab_size,
        context_length,
        full_context_length: options
            .context_length
            .unwrap_or(config.max_position_embeddings),
        kv_block_tokens: KV_BLOCK_TOKENS,
        num_kv_blocks: options.num_kv_blocks,
        logits_cost: config.head_weights() / config.layer_weights(),
        rows_at_once: stages.iter().map(rows_at_once).max().unwrap_or(1),
    }
}

/// Loads `part` of a model.
fn build<B: Backend>(
    file: &GgufFile,
    config: &ModelConfig,
    options: &LoadOptions<'_>,
    context_length: usize,
    backend: B,
    part: Part,
) -> Result<Box<dyn Run>, ModelError> {
    let mut loader = WeightLoader::new(file, &backend, part.clone());
    let network = arch::build(config, context_length, &mut loader)?;
    loader.finish(options.progress, options.packed_cache.as_ref())?;
    let kv_cache = KvCache::new(&backend, config, options.num_kv_blocks, part.layers.len())?;
    let profile = match options.numerics {
        Numerics::Exact => ActivationProfile::A16,
        Numerics::Fast => ActivationProfile::A8,
    };
    let runner = Runner::new(backend, profile, network, kv_cache, part);
    Ok(Box::new(runner))
}

impl ForwardModel for Model {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn forward_layers(&mut self, batch: &ForwardBatch) -> Result<(), ForwardError> {
        batch.validate(&self.info)?;
        self.runner.forward_layers(batch, None)
    }

    fn head(&mut self, wanted: Range<usize>) -> Logits {
        self.runner.head(wanted)
    }

    fn compute(&self) -> &Compute {
        self.runner.compute()
    }
}

/// The longest sequence that both the model and the KV blocks allow.
fn context_length(config: &ModelConfig, options: &LoadOptions<'_>) -> Result<usize, ModelError> {
    if options.num_kv_blocks == 0 {
        return Err(ModelError::ZeroOption {
            option: "num_kv_blocks",
        });
    }
    let max = config.max_position_embeddings;
    let requested = options.context_length.unwrap_or(max);
    if requested == 0 {
        return Err(ModelError::ZeroOption {
            option: "context_length",
        });
    }
    if requested > max {
        return Err(ModelError::ContextTooLong {
            requested,
            max_position_embeddings: max,
            key: format!("{}.context_length", config.architecture.name()),
        });
    }
    Ok(requested.min(options.num_kv_blocks.saturating_mul(KV_BLOCK_TOKENS)))
}
