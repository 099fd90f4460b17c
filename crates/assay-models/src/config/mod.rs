//! A model's hyperparameters in their published names, read from GGUF metadata and range-checked.
//!
//! The GGUF spelling of a hyperparameter stands in this folder and nowhere else. Every number is outside input:
//! what leaves here has passed the ranges below, so shapes computed from it cannot overflow. Settings that would
//! change the result and that we do not run are refused by name.

mod keys;
mod rope;

use assay_formats::GgufFile;
use assay_kernels::attention::KV_BLOCK_TOKENS;

use crate::error::ModelError;
use keys::Keys;
pub use rope::RopeConfig;

const MAX_HIDDEN_SIZE: u32 = 1 << 16;
const MAX_LAYERS: u32 = 1024;
const MAX_HEADS: u32 = 1024;
const MAX_HEAD_DIM: u32 = 1024;
const MAX_INTERMEDIATE_SIZE: u32 = 1 << 20;
const MAX_VOCAB_SIZE: u32 = 1 << 22;
const MAX_CONTEXT: u32 = 1 << 24;

/// Heads are whole vectors of the attention kernel.
const HEAD_DIM_STEP: usize = 16;

/// Layers of the one published Gemma 3 whose attention is scaled by `hidden_size / num_attention_heads`.
const GEMMA3_27B_LAYERS: usize = 62;

/// Architectures with a forward pass here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// Llama and its relatives under the same name: SmolLM2, Mistral.
    Llama,
    /// Gemma 3, text part.
    Gemma3,
}

impl Architecture {
    /// Every supported architecture.
    pub const ALL: [Self; 2] = [Self::Llama, Self::Gemma3];

    /// Its name in GGUF files, also the prefix of its keys.
    pub fn name(self) -> &'static str {
        match self {
            Self::Llama => "llama",
            Self::Gemma3 => "gemma3",
        }
    }

    fn read(file: &GgufFile) -> Result<Self, ModelError> {
        let key = "general.architecture";
        let found = file.metadata().str(key)?.ok_or(ModelError::MissingKey {
            key: key.to_owned(),
        })?;
        let known = Self::ALL.into_iter().find(|known| known.name() == found);
        known.ok_or_else(|| ModelError::UnsupportedArchitecture {
            found: found.chars().take(64).collect(),
            supported: Self::ALL.map(Self::name).join(", "),
        })
    }
}

/// Which keys a layer's queries see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerType {
    /// All up to their own position.
    FullAttention,
    /// The last [`ModelConfig::sliding_window`] up to their own position.
    SlidingAttention,
}

/// Hyperparameters of a model. Counts are at least 1 unless said otherwise.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelConfig {
    /// Which forward pass runs.
    pub architecture: Architecture,
    /// `general.name`, or the architecture's where the file has none.
    pub name: String,
    /// Rows of the embedding and of the head.
    pub vocab_size: usize,
    /// Width of the residual stream.
    pub hidden_size: usize,
    /// Transformer blocks.
    pub num_hidden_layers: usize,
    /// Query heads of a layer; a multiple of [`Self::num_key_value_heads`].
    pub num_attention_heads: usize,
    /// Key and value heads of a layer.
    pub num_key_value_heads: usize,
    /// Elements of a head; a multiple of 16.
    pub head_dim: usize,
    /// Width of the feed-forward block.
    pub intermediate_size: usize,
    /// Added to the mean square in every norm; in (0, 1).
    pub rms_norm_eps: f32,
    /// Longest sequence the model was made for, in tokens.
    pub max_position_embeddings: usize,
    /// Positions of the layers with full attention.
    pub rope: RopeConfig,
    /// Positions of the layers with a window; equal to [`Self::rope`] where there are none.
    pub local_rope: RopeConfig,
    /// Factor of the queries.
    pub attention_scale: f32,
    /// Keys a query of a [`LayerType::SlidingAttention`] layer sees, its own included.
    pub sliding_window: Option<u32>,
    /// `[num_hidden_layers]` kind of each layer.
    pub layer_types: Vec<LayerType>,
    /// Factor of the embeddings: Gemma's √hidden_size, rounded to f32 once.
    pub embedding_scale: Option<f32>,
    /// Cap of the logits.
    pub final_logit_softcap: Option<f32>,
}

impl ModelConfig {
    /// Reads the hyperparameters of `file`.
    ///
    /// # Errors
    /// [`ModelError::UnsupportedArchitecture`], [`ModelError::UnsupportedValue`], or a key that is missing, has
    /// another type, or is out of range: each names the key.
    pub fn from_gguf(file: &GgufFile) -> Result<Self, ModelError> {
        let architecture = Architecture::read(file)?;
        let keys = Keys::new(file.metadata(), architecture.name());
        keys.refuse_unsupported(architecture)?;

        let name = file.metadata().str("general.name")?;
        let hidden_size = keys.count("embedding_length", MAX_HIDDEN_SIZE)?;
        let num_hidden_layers = keys.count("block_count", MAX_LAYERS)?;
        let num_attention_heads = keys.count("attention.head_count", MAX_HEADS)?;
        let num_key_value_heads = keys
            .count_if_present("attention.head_count_kv", MAX_HEADS)?
            .unwrap_or(num_attention_heads);
        keys.require(
            "attention.head_count_kv",
            num_key_value_heads,
            num_attention_heads.is_multiple_of(num_key_value_heads),
            || format!("a divisor of attention.head_count = {num_attention_heads}"),
        )?;
        let head_dim = head_dim(&keys, hidden_size, num_attention_heads)?;
        let rms_norm_eps = keys.f32("attention.layer_norm_rms_epsilon")?;
        keys.require(
            "attention.layer_norm_rms_epsilon",
            rms_norm_eps,
            rms_norm_eps > 0.0 && rms_norm_eps < 1.0,
            || "a number between 0 and 1".to_owned(),
        )?;
        let rope = RopeConfig::read(&keys, head_dim)?;
        let sliding_window = sliding_window(&keys, architecture)?;
        let layer_types = match sliding_window {
            None => vec![LayerType::FullAttention; num_hidden_layers],
            Some(_) => keys.layer_types("attention.sliding_window_pattern", num_hidden_layers)?,
        };
        let local_rope = match sliding_window {
            None => rope,
            Some(_) => RopeConfig::read_local(&keys, head_dim)?,
        };
        Ok(Self {
            architecture,
            name: name
                .filter(|name| !name.is_empty())
                .unwrap_or(architecture.name())
                .to_owned(),
            vocab_size: vocab_size(&keys, file)?,
            hidden_size,
            num_hidden_layers,
            num_attention_heads,
            num_key_value_heads,
            head_dim,
            intermediate_size: keys.count("feed_forward_length", MAX_INTERMEDIATE_SIZE)?,
            rms_norm_eps,
            max_position_embeddings: keys.count("context_length", MAX_CONTEXT)?,
            rope,
            local_rope,
            attention_scale: attention_scale(
                &keys,
                architecture,
                hidden_size,
                num_hidden_layers,
                num_attention_heads,
                head_dim,
            )?,
            sliding_window,
            layer_types,
            embedding_scale: match architecture {
                Architecture::Llama => None,
                Architecture::Gemma3 => Some((hidden_size as f32).sqrt()),
            },
            final_logit_softcap: match architecture {
                // Llama has none; writers that dump every known key leave one in.
                Architecture::Llama => None,
                Architecture::Gemma3 => keys.positive_f32("final_logit_softcapping")?,
            },
        })
    }

    /// Elements of the head's matrix.
    pub fn head_weights(&self) -> f64 {
        self.vocab_size as f64 * self.hidden_size as f64
    }

    /// Elements of the matrices of all layers.
    pub fn layer_weights(&self) -> f64 {
        let key_size = self.num_key_value_heads * self.head_dim;
        let attention = 2 * self.query_size() + 2 * key_size;
        let width = attention + 3 * self.intermediate_size;
        self.num_hidden_layers as f64 * self.hidden_size as f64 * width as f64
    }

    /// Elements of all query heads of a token.
    pub fn query_size(&self) -> usize {
        self.num_attention_heads * self.head_dim
    }

    /// Elements of all key heads, and of all value heads, of a token.
    pub fn key_value_size(&self) -> usize {
        self.num_key_value_heads * self.head_dim
    }

    /// Bytes of one KV block across all layers, keys and values together: what a memory budget is divided by. The
    /// ranges keep it from overflowing.
    pub fn kv_block_bytes(&self) -> usize {
        self.num_hidden_layers * self.key_value_size() * KV_BLOCK_TOKENS * 2 * size_of::<u16>()
    }
}

fn head_dim(keys: &Keys<'_>, hidden_size: usize, num_heads: usize) -> Result<usize, ModelError> {
    let key = "attention.key_length";
    let head_dim = match keys.count_if_present(key, MAX_HEAD_DIM)? {
        Some(head_dim) => head_dim,
        None => {
            let key = "attention.head_count";
            let divides = hidden_size.is_multiple_of(num_heads);
            keys.require(key, num_heads, divides, || {
                format!("a divisor of embedding_length = {hidden_size} where attention.key_length is absent")
            })?;
            hidden_size / num_heads
        }
    };
    if head_dim > MAX_HEAD_DIM as usize || !head_dim.is_multiple_of(HEAD_DIM_STEP) {
        return Err(keys.unsupported(key, format!("{head_dim} (not a multiple of 16 up to 1024)")));
    }
    // Heads of one size serve queries, keys, values and every layer.
    for other in [
        "attention.value_length",
        "attention.key_length_swa",
        "attention.value_length_swa",
    ] {
        if let Some(found) = keys.count_if_present(other, MAX_HEAD_DIM)?
            && found != head_dim
        {
            return Err(keys.unsupported(other, format!("{found} beside heads of {head_dim}")));
        }
    }
    Ok(head_dim)
}

fn attention_scale(
    keys: &Keys<'_>,
    architecture: Architecture,
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    head_dim: usize,
) -> Result<f32, ModelError> {
    if let Some(scale) = keys.positive_f32("attention.scale")? {
        return Ok(scale);
    }
    let queried = match architecture {
        Architecture::Gemma3 if num_hidden_layers == GEMMA3_27B_LAYERS => {
            hidden_size as f32 / num_attention_heads as f32
        }
        Architecture::Llama | Architecture::Gemma3 => head_dim as f32,
    };
    Ok(1.0 / queried.sqrt())
}

/// The window in tokens, where the file has one: `None` and 0 both mean that every layer sees everything.
fn sliding_window(keys: &Keys<'_>, architecture: Architecture) -> Result<Option<u32>, ModelError> {
    let key = "attention.sliding_window";
    match (architecture, keys.u32_if_present(key)?.unwrap_or(0)) {
        (_, 0) => Ok(None),
        (Architecture::Gemma3, window) => Ok(Some(window)),
        (Architecture::Llama, window) => Err(keys.unsupported(key, window)),
    }
}

/// Rows of the embedding table; the vocabulary's own length and the key must agree with it.
fn vocab_size(keys: &Keys<'_>, file: &GgufFile) -> Result<usize, ModelError> {
    let metadata = file.metadata();
    let declared = keys.count_if_present("vocab_size", MAX_VOCAB_SIZE)?;
    let tokens = metadata
        .str_array("tokenizer.ggml.tokens")?
        .map(|tokens| tokens.len());
    let Some(vocab_size) = declared.or(tokens) else {
        return Err(keys.missing("vocab_size"));
    };
    if let Some(found) = tokens
        && (found != vocab_size || found > MAX_VOCAB_SIZE as usize || found == 0)
    {
        return Err(ModelError::InvalidValue {
            key: "tokenizer.ggml.tokens".to_owned(),
            found: format!("an array of {found}"),
            expected: format!("{vocab_size} tokens, from 1 to {MAX_VOCAB_SIZE}"),
        });
    }
    Ok(vocab_size)
}
