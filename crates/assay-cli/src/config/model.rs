//! Which model, and how it is computed.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use assay_engine::{PrefixCache, Speculation};
use assay_kernels::Isa;
use assay_models::Numerics;
use assay_tokenizer::TemplateDate;
use clap::builder::BoolishValueParser;
use clap::{Args, ValueEnum};
use serde::Deserialize;

use super::BadSetting;
use super::device::Device;
use super::file::FileConfig;
use super::store::StoreArgs;
use crate::catalog::{Catalog, DEFAULT_MODEL};

/// What templates that ask for the date are told.
const DEFAULT_DATE: &str = "2025-01-01";
const DEFAULT_PARALLEL: NonZeroUsize = NonZeroUsize::new(8).expect("eight is not zero");
/// More threads than any machine this runs on has cores.
const MAX_THREADS: usize = 1024;

/// Which model, and by which arithmetic. Shared by every command that runs one.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct WeightsArgs {
    /// Path of a .gguf file, or a name that `assay pull` knows [default: smollm2-135m-instruct]
    #[arg(long, env = "ASSAY_MODEL", value_name = "PATH|NAME")]
    model: Option<String>,
    /// exact: 16-bit activations; fast: 8-bit [default: exact]
    #[arg(long, env = "ASSAY_NUMERICS")]
    numerics: Option<NumericsArg>,
    /// Keep the repacked weights in FILE.gguf.assay-packed beside the model and read them from there at the next start
    #[arg(long, env = "ASSAY_CACHE_PACKED", value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", value_parser = BoolishValueParser::new())]
    cache_packed: Option<bool>,
    /// Where it is computed: cpu, cuda, cuda:N (an NVIDIA device), cuda:N,M (several, which share the layers out) or auto. Changes speed, never a bit [default: cpu]
    #[arg(long, env = "ASSAY_DEVICE", value_name = "DEVICE")]
    device: Option<Device>,
    /// Layers on the devices, the last ones; the others are computed on the CPU. Changes speed, never a bit [default: all]
    #[arg(long, env = "ASSAY_GPU_LAYERS", value_name = "N")]
    gpu_layers: Option<usize>,
    #[command(flatten)]
    pub(super) store: StoreArgs,
    /// Force an instruction set: scalar, avx2, avx512 or amx. Changes speed, never a bit; for tests
    #[arg(long, env = "ASSAY_ISA", hide = true)]
    isa: Option<String>,
}

/// Which model, and how much it may take at once. Shared by every command that answers with one.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ModelArgs {
    #[command(flatten)]
    pub(super) weights: WeightsArgs,
    /// Longest prompt and reply together, in tokens [default: the model's own]
    #[arg(long, env = "ASSAY_CONTEXT", value_name = "TOKENS")]
    context: Option<u32>,
    /// Threads that compute [default: all cores]
    #[arg(long, env = "ASSAY_THREADS")]
    threads: Option<NonZeroUsize>,
    /// Sequences in one step [default: 8]
    #[arg(long, env = "ASSAY_PARALLEL", value_name = "N")]
    parallel: Option<NonZeroUsize>,
    /// Type of keys and values in the cache [default: f16]
    #[arg(long, env = "ASSAY_KV", value_name = "TYPE")]
    kv: Option<String>,
    /// Compute every prompt in full: keep and share no keys and values. Changes time, never a bit
    #[arg(long, env = "ASSAY_NO_PREFIX_CACHE", value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", value_parser = BoolishValueParser::new())]
    no_prefix_cache: Option<bool>,
    /// Memory for keys and values, in MiB [default: as much as --parallel full contexts need, within half of the free memory]
    #[arg(long, env = "ASSAY_KV_MEMORY", value_name = "MIB")]
    kv_memory: Option<u64>,
    /// Where guesses of the next tokens come from; changes speed, never a bit. ngram: text that the prompt or the
    /// reply holds already [default: ngram]
    #[arg(long, env = "ASSAY_SPECULATION")]
    speculation: Option<SpeculationArg>,
    /// A smaller model of the same vocabulary that guesses where the text holds no guess; changes speed, never a bit.
    /// Its own keys and values take up to as much memory again
    #[arg(long, env = "ASSAY_DRAFT_MODEL", value_name = "FILE")]
    draft_model: Option<PathBuf>,
    /// Date that templates see, YYYY-MM-DD [default: 2025-01-01]
    #[arg(long, env = "ASSAY_TEMPLATE_DATE", value_name = "DATE")]
    template_date: Option<String>,
}

/// Spelling of [`Numerics`] on the command line.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum NumericsArg {
    /// 16-bit activations.
    Exact,
    /// 8-bit activations.
    Fast,
}

/// Spelling of [`Speculation`] on the command line.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SpeculationArg {
    /// No guesses.
    Off,
    /// Prompt lookup.
    Ngram,
}

/// Type of keys and values in the cache: part of what a result is (`docs/numerics.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KvType {
    /// 16-bit floats.
    F16,
}

impl KvType {
    const ALL: [Self; 1] = [Self::F16];

    /// Its name on the command line and in the fingerprint.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
        }
    }

    fn by_name(name: &str) -> Result<Self> {
        let mut types = Self::ALL.into_iter();
        types.find(|kv| kv.name() == name).with_context(|| {
            let names: Vec<&str> = Self::ALL.into_iter().map(Self::name).collect();
            format!(
                "--kv {name}: the numerics contract has keys and values of type {}, and of no other yet",
                names.join(", ")
            )
        })
    }
}

/// A model and its computation, settled.
#[derive(Debug)]
pub(crate) struct ModelConfig {
    /// What the user called the model.
    pub(crate) model: String,
    pub(crate) context: Option<u32>,
    pub(crate) threads: NonZeroUsize,
    pub(crate) numerics: Numerics,
    pub(crate) parallel: NonZeroUsize,
    pub(crate) kv: KvType,
    pub(crate) prefix_cache: PrefixCache,
    pub(crate) kv_memory_bytes: Option<u64>,
    pub(crate) speculation: Speculation,
    pub(crate) draft_model: Option<PathBuf>,
    /// Whether repacked weights are kept beside the model.
    pub(crate) cache_packed: bool,
    pub(crate) template_date: TemplateDate,
    /// The same as given; part of the fingerprint.
    pub(crate) template_date_text: String,
    pub(crate) cache_dir: PathBuf,
    pub(crate) isa: Isa,
    pub(crate) device: Device,
    /// Layers on the devices; all where `None`.
    pub(crate) gpu_layers: Option<usize>,
    pub(crate) catalog: Catalog,
}

impl WeightsArgs {
    /// Settles the model settings; the rest is by default.
    ///
    /// # Errors
    /// As [`ModelArgs::resolve`].
    pub(crate) fn resolve(self) -> Result<ModelConfig, BadSetting> {
        let args = ModelArgs {
            weights: self,
            ..ModelArgs::default()
        };
        args.resolve()
    }
}

impl ModelArgs {
    /// Settles the model settings.
    ///
    /// # Errors
    /// If the configuration file cannot be read, or a value is out of range.
    pub(crate) fn resolve(self) -> Result<ModelConfig, BadSetting> {
        let file = self.weights.store.read_file()?;
        Ok(self.resolve_with(&file)?)
    }

    pub(super) fn resolve_with(self, file: &FileConfig) -> Result<ModelConfig> {
        let weights = self.weights;
        let isa = match &weights.isa {
            None => Isa::detect(),
            Some(name) => Isa::by_name(name).with_context(|| {
                let names: Vec<&str> = Isa::available().into_iter().map(Isa::name).collect();
                format!("ASSAY_ISA={name}: this CPU has {}", names.join(", "))
            })?,
        };
        let date_text = self.template_date.or_else(|| file.template_date.clone());
        let date_text = date_text.unwrap_or_else(|| DEFAULT_DATE.to_owned());
        let template_date = TemplateDate::from_str(&date_text).context("--template-date")?;
        let context = self.context.or(file.context);
        if context == Some(0) {
            bail!("--context must be at least 1");
        }
        let kv_memory = self.kv_memory.or(file.kv_memory);
        if kv_memory == Some(0) {
            bail!("--kv-memory must be at least 1 MiB");
        }
        let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let threads = self.threads.or(file.threads).unwrap_or(cores);
        if threads.get() > MAX_THREADS {
            bail!("--threads must be at most {MAX_THREADS}, found {threads}");
        }
        let numerics = match weights
            .numerics
            .or(file.numerics)
            .unwrap_or(NumericsArg::Exact)
        {
            NumericsArg::Exact => Numerics::Exact,
            NumericsArg::Fast => Numerics::Fast,
        };
        let speculation = match self
            .speculation
            .or(file.speculation)
            .unwrap_or(SpeculationArg::Ngram)
        {
            SpeculationArg::Off => Speculation::Off,
            SpeculationArg::Ngram => Speculation::Ngram,
        };
        let draft_model = self.draft_model.or_else(|| file.draft_model.clone());
        if draft_model.is_some() && speculation == Speculation::Off {
            bail!("--draft-model with --speculation off: leave out one of them");
        }
        let kv = self.kv.as_deref().or(file.kv.as_deref());
        let no_prefix_cache = self.no_prefix_cache.or(file.no_prefix_cache);
        let store = weights.store.resolve_with(file)?;
        Ok(ModelConfig {
            kv: kv.map_or(Ok(KvType::F16), KvType::by_name)?,
            prefix_cache: match no_prefix_cache.unwrap_or(false) {
                true => PrefixCache::Off,
                false => PrefixCache::On,
            },
            model: weights
                .model
                .or_else(|| file.model.clone())
                .unwrap_or_else(|| DEFAULT_MODEL.to_owned()),
            context,
            threads,
            numerics,
            parallel: self.parallel.or(file.parallel).unwrap_or(DEFAULT_PARALLEL),
            kv_memory_bytes: kv_memory
                .map(|mib| {
                    mib.checked_mul(1 << 20)
                        .context("--kv-memory is out of range")
                })
                .transpose()?,
            speculation,
            draft_model,
            cache_packed: weights.cache_packed.or(file.cache_packed).unwrap_or(false),
            template_date,
            template_date_text: date_text,
            cache_dir: store.cache_dir,
            isa,
            device: weights.device.or(file.device.clone()).unwrap_or_default(),
            gpu_layers: weights.gpu_layers.or(file.gpu_layers),
            catalog: store.catalog,
        })
    }
}
