//! The models under test: read once, their weights lent to one engine after the other, or loaded anew.

use std::collections::BTreeMap;
use std::io::Write;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use assay_engine::TokenBytes;
use assay_formats::GgufFile;
use assay_kernels::{Compute, Isa, ThreadPool};
use assay_models::{
    ForwardBatch, ForwardError, ForwardModel, LoadOptions, Logits, Model, ModelInfo, Numerics,
    TokenId,
};
use assay_testkit::tiny_model::{ASCII_TEXT_TOKENS, TinyModel};
use assay_tokenizer::{EncodeOptions, SpecialText, SpecialTokens, Tokenizer};

/// Longest sequence of a subject.
pub const CONTEXT_TOKENS: usize = 1_024;
/// KV blocks of every loaded model; an engine may be told of fewer.
pub const KV_BLOCKS: usize = 640;
/// Tokens of a KV block.
pub const BLOCK_TOKENS: usize = 16;

/// Where `cargo xtask fixtures` puts the real models' files.
///
/// # Errors
/// There is no home directory.
pub fn models_dir() -> Result<PathBuf> {
    let base = std::env::var_os("XDG_CACHE_HOME").filter(|base| !base.is_empty());
    let base = base.map(PathBuf::from);
    let base = base.or_else(|| std::env::home_dir().map(|home| home.join(".cache")));
    let base = base.context("no home directory: name the models' folder")?;
    Ok(base.join("assay/models"))
}

/// How long a lent model may take to come back: its engine has ended, its thread is about to.
const RETURN_PATIENCE: Duration = Duration::from_secs(60);

/// What weights are lent for; one at a time for each use and number of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Use {
    /// The engine under test.
    Target,
    /// Its drafts.
    Draft,
    /// References, which run beside it.
    Reference,
}

/// Whose weights an engine runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weights {
    /// Those of the engine before, with what stands in its KV slots.
    Kept,
    /// Read and packed again, as by a restart.
    LoadedAnew,
}

/// A model file under test.
pub struct Subject {
    /// For people, and for `--model`.
    pub name: String,
    /// The file's tokenizer.
    pub tokenizer: Arc<Tokenizer>,
    /// Spelling of every token.
    pub token_bytes: Arc<TokenBytes>,
    file: GgufFile,
    idle: Mutex<BTreeMap<(Use, usize), Slot>>,
    returned: Condvar,
}

/// Where weights are while nobody has them.
enum Slot {
    Lent,
    Idle(Box<Model>),
}

impl Subject {
    /// The model of the file at `path`.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn open(name: &str, path: &Path) -> Result<Arc<Self>> {
        let file = GgufFile::open(path).with_context(|| path.display().to_string())?;
        let tokenizer = Arc::new(Tokenizer::from_metadata(file.metadata())?);
        let token_bytes = Arc::new(TokenBytes::from(tokenizer.as_ref()));
        Ok(Arc::new(Self {
            name: name.to_owned(),
            tokenizer,
            token_bytes,
            file,
            idle: Mutex::new(BTreeMap::new()),
            returned: Condvar::new(),
        }))
    }

    /// The subject of this name: `tiny-llama`, `tiny-gemma3`, `smollm2` or `gemma3`; real files from `models`.
    ///
    /// # Errors
    /// No such name, or no such file.
    pub fn named(name: &str, models: &Path) -> Result<Arc<Self>> {
        let file = match name {
            "tiny-llama" => return Self::tiny(name, TinyModel::llama()),
            "tiny-gemma3" => return Self::tiny(name, TinyModel::gemma3()),
            "smollm2" => "SmolLM2-135M-Instruct.Q4_1.gguf",
            "gemma3" => "gemma-3-270m-q4_k_m.gguf",
            _ => bail!("no model {name}: tiny-llama, tiny-gemma3, smollm2 or gemma3"),
        };
        let path = models.join(file);
        if !path.exists() {
            bail!("{} is missing: run `cargo xtask fixtures`", path.display());
        }
        Self::open(name, &path)
    }

    /// A model of random weights on the real code path.
    fn tiny(name: &str, mut model: TinyModel) -> Result<Arc<Self>> {
        model.set_context_length(u32::try_from(CONTEXT_TOKENS)?);
        model.set_ascii_vocabulary();
        let mut file = tempfile::NamedTempFile::new()?;
        file.write_all(&model.build())?;
        // The map outlives the file's name.
        Self::open(name, file.path())
    }

    /// Whether the weights mean something.
    pub fn is_real(&self) -> bool {
        !self.name.starts_with("tiny")
    }

    /// Ids that any prompt may hold: `0..num_text_tokens`.
    pub fn num_text_tokens(&self) -> usize {
        if self.is_real() {
            self.tokenizer.vocab_size()
        } else {
            ASCII_TEXT_TOKENS as usize
        }
    }

    /// Tokens that end a reply.
    pub fn end_token_ids(&self) -> Vec<TokenId> {
        self.tokenizer.end_token_ids().to_vec()
    }

    /// Text as tokens.
    ///
    /// # Errors
    /// The vocabulary does not spell it.
    pub fn encode(&self, text: &str) -> Result<Vec<TokenId>> {
        let options = EncodeOptions {
            add_special: SpecialTokens::Omit,
            parse_special: SpecialText::Literal,
        };
        Ok(self.tokenizer.encode(text, options)?)
    }

    /// Weights for an engine on `threads` threads that is told of `num_kv_blocks` blocks.
    ///
    /// # Errors
    /// They cannot be loaded, or an engine that ended did not give them back.
    pub fn lend(
        self: &Arc<Self>,
        use_: Use,
        threads: NonZeroUsize,
        weights: Weights,
        num_kv_blocks: usize,
    ) -> Result<Lease> {
        let key = (use_, threads.get());
        let kept = self.take_idle(key)?;
        let model = match (weights, kept) {
            (Weights::Kept, Some(model)) => model,
            // What is there is dropped first: two would need the memory of both.
            (_, kept) => {
                drop(kept);
                Box::new(self.load(threads)?)
            }
        };
        let mut info = model.info().clone();
        info.num_kv_blocks = info.num_kv_blocks.min(num_kv_blocks);
        let pool_tokens = info.num_kv_blocks * info.kv_block_tokens;
        info.context_length = info.context_length.min(pool_tokens);
        Ok(Lease {
            subject: Arc::clone(self),
            key,
            info,
            model: Some(model),
        })
    }

    fn take_idle(&self, key: (Use, usize)) -> Result<Option<Box<Model>>> {
        let idle = self.slots();
        let is_lent = |idle: &mut BTreeMap<_, Slot>| matches!(idle.get(&key), Some(Slot::Lent));
        let (mut idle, timeout) = self
            .returned
            .wait_timeout_while(idle, RETURN_PATIENCE, is_lent)
            .unwrap_or_else(PoisonError::into_inner);
        if timeout.timed_out() {
            bail!("an engine that ended kept its model");
        }
        match idle.insert(key, Slot::Lent) {
            Some(Slot::Idle(model)) => Ok(Some(model)),
            _ => Ok(None),
        }
    }

    fn load(&self, threads: NonZeroUsize) -> Result<Model> {
        let options = LoadOptions {
            context_length: Some(CONTEXT_TOKENS),
            num_kv_blocks: KV_BLOCKS,
            numerics: Numerics::Exact,
            compute: Compute::new(Isa::detect(), ThreadPool::new(threads)),
            progress: None,
            packed_cache: None,
        };
        Ok(Model::load(&self.file, options)?)
    }

    fn slots(&self) -> MutexGuard<'_, BTreeMap<(Use, usize), Slot>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A lent model; it goes back when its engine's thread ends.
pub struct Lease {
    subject: Arc<Subject>,
    key: (Use, usize),
    info: ModelInfo,
    /// Present until dropped.
    model: Option<Box<Model>>,
}

impl Lease {
    fn model(&self) -> &Model {
        self.model.as_ref().expect("present until dropped")
    }

    fn model_mut(&mut self) -> &mut Model {
        self.model.as_mut().expect("present until dropped")
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(model) = self.model.take() {
            self.subject.slots().insert(self.key, Slot::Idle(model));
            self.subject.returned.notify_all();
        }
    }
}

impl ForwardModel for Lease {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn forward_layers(&mut self, batch: &ForwardBatch) -> Result<(), ForwardError> {
        self.model_mut().forward_layers(batch)
    }

    fn head(&mut self, wanted: Range<usize>) -> Logits {
        self.model_mut().head(wanted)
    }

    fn compute(&self) -> &Compute {
        self.model().compute()
    }
}
