//! `GET /v1/about`: what runs here, and what it runs on.

use schemars::JsonSchema;
use serde::Serialize;

/// What answers: everything that can change a bit, and what changes only time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct About {
    /// Always `about`.
    #[schemars(extend("const" = "about"))]
    pub object: String,
    /// Version of the server.
    pub assay_version: String,
    /// When the model was loaded, seconds since 1970.
    pub created: u64,
    /// Weights, tokenizer, template, numerics and settings that can change a bit, in one short hash.
    pub system_fingerprint: String,
    /// Version of the numerics contract.
    pub numerics: String,
    /// `exact`: 16-bit activations; `fast`: 8-bit.
    pub profile: String,
    /// Name and version of the way that typed questions are put to the model.
    pub prompt_format: String,
    /// Date that chat templates see.
    pub template_date: String,
    /// The model.
    pub model: AboutModel,
    /// Keys and values of what is read and written.
    pub kv_cache: AboutKvCache,
    /// What it is computed on.
    pub device: DeviceFacts,
    /// Whether every reply that can carry its receipt does.
    pub receipts: bool,
    /// Whether receipts are kept in a file.
    pub ledger: bool,
}

/// The model.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AboutModel {
    /// Name that requests use.
    pub id: String,
    /// Further names that requests may use.
    pub aliases: Vec<String>,
    /// What its file calls it.
    pub name: String,
    /// Its architecture.
    pub architecture: String,
    /// SHA-256 of the whole file.
    pub sha256: String,
    /// SHA-256 of the tokenizer's definition.
    pub tokenizer_sha256: String,
    /// SHA-256 of the chat template's text; null where the file has none.
    pub template_sha256: Option<String>,
    /// Longest prompt and reply together, in tokens.
    pub max_model_len: u64,
    /// Tokens that it knows.
    pub vocab_size: usize,
    /// What its file holds.
    #[serde(flatten)]
    pub file: ModelFacts,
}

/// What a model's file holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct ModelFacts {
    /// Longest sequence that it was made for, in tokens.
    pub trained_context: u64,
    /// Layers.
    pub num_layers: usize,
    /// Width of the residual stream.
    pub hidden_size: usize,
    /// Width of the feed-forward block.
    pub intermediate_size: usize,
    /// Query heads of a layer.
    pub num_attention_heads: usize,
    /// Key and value heads of a layer.
    pub num_key_value_heads: usize,
    /// Elements of a head.
    pub head_dim: usize,
    /// Keys that a layer with a window sees; null where none has one.
    pub sliding_window: Option<u32>,
    /// Weights, by the format that the file has them in, the most bytes first.
    pub weights: Vec<WeightFacts>,
    /// Name of the smaller model that guesses ahead; null where there is none.
    pub draft_model: Option<String>,
}

/// All weights of one format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WeightFacts {
    /// The format, such as `Q4_1`.
    pub format: String,
    /// Tensors.
    pub num_tensors: usize,
    /// Their elements.
    pub num_elements: u64,
    /// Their bytes in the file.
    pub num_bytes: u64,
}

/// The cache of keys and values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AboutKvCache {
    /// Type of an element.
    pub element: String,
    /// Tokens in one block.
    pub block_tokens: usize,
    /// Blocks.
    pub num_blocks: usize,
    /// Bytes of one block.
    pub block_bytes: u64,
}

/// What a model is computed on, and how many sequences at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DeviceFacts {
    /// `cpu`, or the device's name.
    pub name: String,
    /// Instruction set of the CPU that is used.
    pub isa: String,
    /// Threads that compute.
    pub num_threads: usize,
    /// Sequences in one step.
    pub max_num_seqs: usize,
    /// Whether prompts that begin alike share what was computed.
    pub prefix_cache: bool,
    /// Where guesses of the next tokens come from: `off`, `ngram`.
    pub speculation: String,
}
