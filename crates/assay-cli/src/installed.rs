//! What was loaded, and onto what, as `GET /v1/about` tells it.

use std::collections::BTreeMap;

use assay_engine::{PrefixCache, Speculation};
use assay_formats::GgufFile;
use assay_models::ModelConfig as Hyperparameters;
use assay_server::{DeviceFacts, Installed, ModelFacts, WeightFacts};

use crate::config::ModelConfig;

/// The facts of `file` under `config`, computed on `device`; none is the CPU.
pub(crate) fn facts(
    config: &ModelConfig,
    file: &GgufFile,
    hyperparameters: &Hyperparameters,
    device: Option<&str>,
) -> Installed {
    let draft_model = config
        .draft_model
        .as_ref()
        .and_then(|path| path.file_stem());
    Installed {
        model: ModelFacts {
            trained_context: hyperparameters.max_position_embeddings as u64,
            num_layers: hyperparameters.num_hidden_layers,
            hidden_size: hyperparameters.hidden_size,
            intermediate_size: hyperparameters.intermediate_size,
            num_attention_heads: hyperparameters.num_attention_heads,
            num_key_value_heads: hyperparameters.num_key_value_heads,
            head_dim: hyperparameters.head_dim,
            sliding_window: hyperparameters.sliding_window,
            weights: weights(file),
            draft_model: draft_model.map(|name| name.to_string_lossy().into_owned()),
        },
        device: DeviceFacts {
            name: device.unwrap_or("cpu").to_owned(),
            isa: config.isa.name().to_owned(),
            num_threads: config.threads.get(),
            max_num_seqs: config.parallel.get(),
            prefix_cache: config.prefix_cache == PrefixCache::On,
            speculation: match config.speculation {
                Speculation::Off => "off",
                Speculation::Ngram => "ngram",
            }
            .to_owned(),
        },
        kv_block_bytes: hyperparameters.kv_block_bytes() as u64,
    }
}

/// All tensors by their format, the most bytes first.
fn weights(file: &GgufFile) -> Vec<WeightFacts> {
    let mut by_format: BTreeMap<String, WeightFacts> = BTreeMap::new();
    for tensor in file.tensors().iter() {
        let format = tensor.dtype.to_string();
        let facts = by_format
            .entry(format)
            .or_insert_with_key(|format| WeightFacts {
                format: format.clone(),
                num_tensors: 0,
                num_elements: 0,
                num_bytes: 0,
            });
        facts.num_tensors += 1;
        facts.num_elements += tensor.num_elements();
        facts.num_bytes += tensor.byte_len;
    }
    let mut weights: Vec<WeightFacts> = by_format.into_values().collect();
    // Stable, so that formats of equal size stay in the order of their names.
    weights.sort_by_key(|facts| std::cmp::Reverse(facts.num_bytes));
    weights
}
