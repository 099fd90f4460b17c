//! From a model's name or path to a running engine: fetch, map, check, pack, self-test, spawn.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use assay_engine::{Engine, EngineConfig, EngineHandle, TokenBytes};
use assay_formats::GgufFile;
use assay_kernels::attention::KV_BLOCK_TOKENS;
use assay_kernels::cuda::Cuda;
use assay_kernels::numerics::CONTRACT_VERSION;
use assay_kernels::{Compute, ThreadPool};
use assay_models::{
    CacheEvent, ForwardModel, LoadOptions, Model, ModelConfig as Hyperparameters, ModelInfo,
    Numerics, PackedCache, Stage,
};
use assay_receipt::{Identity, ModelFacts, Overrides, Sha256Hex};
use assay_server::{Installed, PROMPT_FORMAT};
use assay_tokenizer::{ChatTemplate, TemplateTokens, Tokenizer};

use crate::config::ModelConfig;
use crate::interrupt::Interrupt;
use crate::{digest, draft_model, installed, progress, pull, system};

/// A model that is ready to answer.
pub(crate) struct Loaded {
    /// Name of the model on the wire.
    pub(crate) model_id: String,
    /// Facts of the model.
    pub(crate) info: ModelInfo,
    /// The engine that runs it.
    pub(crate) engine: EngineHandle,
    /// Its tokenizer.
    pub(crate) tokenizer: Arc<Tokenizer>,
    /// Its chat template, where the file has one.
    pub(crate) template: Option<ChatTemplate>,
    /// Everything that can change a bit.
    pub(crate) identity: Identity,
    /// What was loaded, and onto what.
    pub(crate) installed: Installed,
}

/// Loads the model of `config` and starts an engine with room for `queue_limit` waiting requests.
///
/// # Errors
/// If the model cannot be found, fetched, read or run; the message names what is wrong.
pub(crate) fn load(
    config: &ModelConfig,
    queue_limit: usize,
    interrupt: &Interrupt,
) -> Result<Loaded> {
    let started = Instant::now();
    let (model_id, path) = locate(config, interrupt)?;
    let shown = path.display();
    let file = GgufFile::open(&path).with_context(|| format!("cannot read {shown}"))?;
    let tokenizer = Tokenizer::from_metadata(file.metadata())
        .with_context(|| format!("the tokenizer of {shown}"))?;
    let template =
        chat_template(&tokenizer).with_context(|| format!("the chat template of {shown}"))?;

    let devices = config.device.open()?;
    let hash = || digest::sha256_of_file(&path, &config.cache_dir);
    let load_weights = |cache: Option<PackedCache<'_>>| {
        load_weights(config, &file, cache, &devices).with_context(|| format!("cannot load {shown}"))
    };
    let (weights_sha256, model) = if config.cache_packed {
        // The hash is the cache's key, so it comes first; from the second start on it is remembered.
        let sha256 = hash()?;
        let cache = PackedCache {
            path: &packed_cache_path(&path),
            model: &path,
            model_sha256: &sha256,
            report: &|event| report_cache(&path, event),
        };
        let model = load_weights(Some(cache))?;
        (sha256, model)
    } else {
        // The hash only reads the file; it runs beside the packing.
        let (sha256, model) = std::thread::scope(|scope| {
            let hashing = scope.spawn(hash);
            let model = load_weights(None);
            (hashing.join(), model)
        });
        let sha256 = sha256.map_err(|_| anyhow::anyhow!("hashing {shown} panicked"))??;
        (sha256, model?)
    };
    assay_kernels::self_test(model.compute())
        .context("this CPU does not compute what the contract says")?;

    let info = model.info().clone();
    let identity = identity(
        config,
        &model_id,
        &weights_sha256,
        &tokenizer,
        &info.architecture,
    )?;
    let hyperparameters = Hyperparameters::from_gguf(&file)?;
    let names: Vec<&str> = devices.iter().map(|device| device.name()).collect();
    let device = (!names.is_empty()).then(|| names.join(", "));
    let installed = installed::facts(config, &file, &hyperparameters, device.as_deref());
    let token_bytes = TokenBytes::from(&tokenizer);
    let engine_config = EngineConfig {
        max_num_seqs: config.parallel.get(),
        max_num_batched_tokens: EngineConfig::default()
            .max_num_batched_tokens
            .max(config.parallel.get()),
        queue_limit,
        speculation: config.speculation,
        prefix_cache: config.prefix_cache,
        ..EngineConfig::default()
    };
    let token_bytes = Arc::new(token_bytes);
    let engine = match &config.draft_model {
        Some(draft_path) => {
            let draft_model = draft_model::load(config, draft_path, &path, &tokenizer, &devices)?;
            Engine::spawn_with_draft_model(
                Box::new(model),
                draft_model,
                token_bytes,
                engine_config,
            )?
        }
        None => Engine::spawn(Box::new(model), token_bytes, engine_config)?,
    };
    tracing::info!(
        model = %model_id,
        architecture = %info.architecture,
        context = info.context_length,
        kv_tokens = info.num_kv_blocks * info.kv_block_tokens,
        threads = config.threads.get(),
        isa = config.isa.name(),
        numerics = profile_name(config.numerics),
        seconds = started.elapsed().as_secs_f64(),
        "model ready"
    );
    Ok(Loaded {
        model_id,
        info,
        engine,
        tokenizer: Arc::new(tokenizer),
        template,
        identity,
        installed,
    })
}

/// Everything that can change a bit, of the file with this hash.
///
/// # Errors
/// `weights_sha256` is no hash.
pub(crate) fn identity(
    config: &ModelConfig,
    model_id: &str,
    weights_sha256: &str,
    tokenizer: &Tokenizer,
    architecture: &str,
) -> Result<Identity> {
    let template = tokenizer.chat_template_source();
    Ok(Identity {
        numerics: CONTRACT_VERSION.to_owned(),
        profile: profile_name(config.numerics).to_owned(),
        kv: config.kv.name().to_owned(),
        model: ModelFacts {
            sha256: Sha256Hex::of_digits(weights_sha256)
                .context("the file's hash is no SHA-256")?,
            name: model_id.to_owned(),
            architecture: architecture.to_owned(),
        },
        tokenizer_sha256: Sha256Hex::of_hash(&tokenizer.hash()),
        template_sha256: template.map(|source| Sha256Hex::of_bytes(source.as_bytes())),
        prompt_format: PROMPT_FORMAT.to_owned(),
        overrides: Overrides {
            context: config.context,
            template_date: config.template_date_text.clone(),
            ..Overrides::default()
        },
    })
}

/// Name on the wire and path on disk; a named model is fetched if it is not there.
pub(crate) fn locate(config: &ModelConfig, interrupt: &Interrupt) -> Result<(String, PathBuf)> {
    if let Some(path) = given_path(config) {
        return Ok((model_id(config), path.to_owned()));
    }
    let model = config.catalog.find(&config.model)?;
    let pulled = pull::pull(model, &config.cache_dir, interrupt)?;
    Ok((model.name.clone(), pulled.path))
}

/// The model's file, where it was given by its path and not by a name.
pub(crate) fn given_path(config: &ModelConfig) -> Option<&Path> {
    let path = Path::new(&config.model);
    let looks_like_path =
        path.components().count() > 1 || path.extension().is_some_and(|ext| ext == "gguf");
    (looks_like_path || path.is_file()).then_some(path)
}

/// The model's name on the wire: its own, or its file's without the ending.
pub(crate) fn model_id(config: &ModelConfig) -> String {
    let stem = given_path(config).and_then(Path::file_stem);
    stem.map_or_else(
        || config.model.clone(),
        |stem| stem.to_string_lossy().into_owned(),
    )
}

pub(crate) fn chat_template(tokenizer: &Tokenizer) -> Result<Option<ChatTemplate>> {
    let Some(source) = tokenizer.chat_template_source() else {
        return Ok(None);
    };
    Ok(Some(ChatTemplate::new(
        source,
        TemplateTokens::of(tokenizer),
    )?))
}

/// `MODEL.gguf.assay-packed`, beside the model.
fn packed_cache_path(model: &Path) -> PathBuf {
    let mut name = model.as_os_str().to_owned();
    name.push(".assay-packed");
    name.into()
}

/// A cache that fails costs time, never a number: it is worth a warning and no more.
fn report_cache(model: &Path, event: CacheEvent) {
    let path = packed_cache_path(model);
    let path = path.display();
    match event {
        CacheEvent::Read => tracing::info!(%path, "packed weights read"),
        CacheEvent::Written => tracing::info!(%path, "packed weights written"),
        CacheEvent::Ignored(reason) => {
            tracing::warn!(%path, %reason, "the packed weights are ignored and packed again");
        }
        CacheEvent::NotWritten(reason) => {
            tracing::warn!(%path, %reason, "the packed weights are not kept");
        }
    }
}

fn load_weights(
    config: &ModelConfig,
    file: &GgufFile,
    packed_cache: Option<PackedCache<'_>>,
    devices: &[Arc<Cuda>],
) -> Result<Model> {
    let hyperparameters = Hyperparameters::from_gguf(file)?;
    let bar = progress::bytes_bar("loading", 0);
    let on_progress = |progress| progress::follow_load(&bar, progress);
    let weight_bytes = file.tensors().iter().map(|tensor| tensor.byte_len).sum();
    let num_layers = hyperparameters.num_hidden_layers;
    let stages = Stage::split(num_layers, devices, config.gpu_layers);
    let num_kv_blocks = num_kv_blocks(config, &hyperparameters, &stages, weight_bytes);
    let options = LoadOptions {
        context_length: config.context.map(|tokens| tokens as usize),
        num_kv_blocks,
        numerics: config.numerics,
        compute: Compute::new(config.isa, ThreadPool::new(config.threads)),
        progress: Some(&on_progress),
        packed_cache,
    };
    let model = Model::load_staged(file, hyperparameters, options, &stages);
    bar.finish_and_clear();
    Ok(model?)
}

/// Blocks for `--parallel` full contexts, or as many as fit the memory that may be used: half of what is free where the
/// least is for the layers there, on a device once its share of `weight_bytes` of weights is there.
pub(crate) fn num_kv_blocks(
    config: &ModelConfig,
    hyperparameters: &Hyperparameters,
    stages: &[Stage],
    weight_bytes: u64,
) -> usize {
    let context = config
        .context
        .map_or(hyperparameters.max_position_embeddings, |tokens| {
            tokens as usize
        });
    let wanted = context
        .div_ceil(KV_BLOCK_TOKENS)
        .saturating_mul(config.parallel.get());
    let block_bytes = hyperparameters.kv_block_bytes().max(1) as u64;
    let num_layers = hyperparameters.num_hidden_layers.max(1) as u64;
    // Of a stage, which has its layers' part of each block and of the weights.
    let fitting_in = |stage: &Stage| {
        let layers = stage.layers.len() as u64;
        let share = |bytes: u64| bytes / num_layers * layers;
        let free = match &stage.cuda {
            Some(cuda) => cuda
                .free_memory_bytes()
                .map(|bytes| bytes.saturating_sub(share(weight_bytes))),
            None => system::available_memory_bytes(),
        };
        free.map(|bytes| bytes / 2 / share(block_bytes).max(1))
    };
    let fitting = match config.kv_memory_bytes {
        Some(bytes) => Some(bytes / block_bytes),
        None => stages.iter().filter_map(fitting_in).min(),
    };
    let fitting = fitting.map_or(usize::MAX, |blocks| {
        usize::try_from(blocks).unwrap_or(usize::MAX)
    });
    let kv_tokens = fitting.saturating_mul(KV_BLOCK_TOKENS);
    if kv_tokens < context {
        tracing::warn!(
            kv_tokens,
            context,
            "the KV cache holds less than the context: longer requests are refused; --kv-memory makes it larger"
        );
    } else if fitting < wanted {
        tracing::warn!(
            kv_tokens,
            wanted_tokens = wanted.saturating_mul(KV_BLOCK_TOKENS),
            "the KV cache is smaller than --parallel full contexts"
        );
    }
    wanted.min(fitting).max(1)
}

pub(crate) fn profile_name(numerics: Numerics) -> &'static str {
    match numerics {
        Numerics::Exact => "exact",
        Numerics::Fast => "fast",
    }
}
