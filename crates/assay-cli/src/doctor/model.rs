//! The model's file: is it there, does it parse, is it what it should be, and does it fit.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use assay_formats::GgufFile;
use assay_kernels::attention::KV_BLOCK_TOKENS;
use assay_models::{ModelConfig as Hyperparameters, Stage};
use assay_tokenizer::Tokenizer;

use crate::catalog::CatalogModel;
use crate::config::{Device, ModelConfig, ServeConfig};
use crate::{digest, draft_model, load, serve, system};

use super::{Check, Size};

const NAME: &str = "model";

pub(super) fn checks(config: &ServeConfig) -> Vec<Check> {
    let model = &config.model;
    let listed = match load::given_path(model) {
        Some(_) => None,
        None => match model.catalog.find(&model.model) {
            Ok(listed) => Some(listed),
            Err(error) => {
                return vec![Check::fail(NAME, error.to_string(), "give another --model")];
            }
        },
    };
    let path = match listed {
        Some(listed) => model.cache_dir.join(&listed.file),
        None => PathBuf::from(&model.model),
    };
    if !path.exists() {
        return vec![missing(&path, listed)];
    }
    let file = match File::read(&path) {
        Ok(file) => file,
        Err(error) => {
            let advice = match listed {
                Some(listed) => format!(
                    "remove {} and fetch it again: assay pull {}",
                    path.display(),
                    listed.name
                ),
                None => "give a GGUF file of a supported model; `assay inspect FILE` shows what it holds".to_owned(),
            };
            return vec![Check::fail(NAME, format!("{error:#}"), advice)];
        }
    };
    let mut checks = vec![
        file.contents(&path),
        file.checksum(config, &path, listed),
        file.memory(model),
    ];
    if let Some(draft) = &model.draft_model {
        checks.push(match draft_model::open(draft, &file.tokenizer) {
            Ok(_) => Check::ok("draft model", draft.display().to_string()),
            Err(error) => Check::fail(
                "draft model",
                format!("{error:#}"),
                "give a smaller model of the same family, or leave --draft-model out",
            ),
        });
    }
    checks
}

/// What of a model's file is read without its weights.
struct File {
    gguf: GgufFile,
    tokenizer: Tokenizer,
    hyperparameters: Hyperparameters,
}

impl File {
    fn read(path: &Path) -> Result<Self> {
        let gguf =
            GgufFile::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Self {
            tokenizer: Tokenizer::from_metadata(gguf.metadata()).context("the tokenizer")?,
            hyperparameters: Hyperparameters::from_gguf(&gguf)?,
            gguf,
        })
    }

    fn weight_bytes(&self) -> u64 {
        self.gguf
            .tensors()
            .iter()
            .map(|tensor| tensor.byte_len)
            .sum()
    }

    fn contents(&self, path: &Path) -> Check {
        let found = format!(
            "{}: {}, {} tensors, {}",
            path.display(),
            self.hyperparameters.architecture.name(),
            self.gguf.tensors().len(),
            Size(self.weight_bytes())
        );
        match load::chat_template(&self.tokenizer) {
            Ok(Some(_)) => Check::ok(NAME, found),
            Ok(None) => Check::ok(NAME, format!("{found}; no chat template"))
                .with_advice("a base model: completions, scores and decisions, no chats"),
            Err(error) => Check::fail(
                NAME,
                format!("{found}; its chat template: {error:#}"),
                "the file cannot be served; get it from another source",
            ),
        }
    }

    fn checksum(&self, config: &ServeConfig, path: &Path, listed: Option<&CatalogModel>) -> Check {
        const NAME: &str = "identity";
        let sha256 = match digest::sha256_of_file(path, &config.model.cache_dir) {
            Ok(sha256) => sha256,
            Err(error) => return Check::fail(NAME, format!("{error:#}"), "make the file readable"),
        };
        if let Some(listed) = listed.filter(|listed| listed.sha256 != sha256) {
            return Check::fail(
                NAME,
                format!(
                    "SHA-256 {sha256}, and {} has {}",
                    listed.name, listed.sha256
                ),
                format!("fetch it again: assay pull {}", listed.name),
            );
        }
        let architecture = self.hyperparameters.architecture.name();
        let model_id = load::model_id(&config.model);
        let identity = load::identity(
            &config.model,
            &model_id,
            &sha256,
            &self.tokenizer,
            architecture,
        );
        match identity {
            Ok(mut identity) => {
                serve::override_parsers(&mut identity, config);
                let found = format!("{}, SHA-256 {sha256}", identity.fingerprint());
                match listed {
                    Some(_) => Check::ok(NAME, format!("{found} as listed")),
                    None => Check::ok(NAME, found),
                }
            }
            Err(error) => Check::fail(NAME, format!("{error:#}"), "report this"),
        }
    }

    fn memory(&self, config: &ModelConfig) -> Check {
        let block_bytes = self.hyperparameters.kv_block_bytes() as u64;
        let on_cpu = Stage::split(self.hyperparameters.num_hidden_layers, &[], None);
        let num_blocks = load::num_kv_blocks(config, &self.hyperparameters, &on_cpu, 0) as u64;
        let context = config.context.map_or(
            self.hyperparameters.max_position_embeddings as u64,
            u64::from,
        );
        memory(
            Need {
                weights: self.weight_bytes(),
                keys_and_values: num_blocks.saturating_mul(block_bytes),
                kv_tokens: num_blocks * KV_BLOCK_TOKENS as u64,
                context,
                parallel: config.parallel.get() as u64,
            },
            system::available_memory_bytes(),
            &config.device,
        )
    }
}

/// What a model takes.
#[derive(Clone, Copy, Debug)]
struct Need {
    weights: u64,
    keys_and_values: u64,
    /// Tokens that those are of.
    kv_tokens: u64,
    context: u64,
    parallel: u64,
}

fn memory(need: Need, available: Option<u64>, device: &Device) -> Check {
    const NAME: &str = "memory";
    let weights = Size(need.weights);
    if *device != Device::Cpu {
        let found = format!(
            "the weights take {weights} of the device's, and keys and values up to half of its rest"
        );
        return Check::ok(NAME, found);
    }
    let Some(available) = available else {
        return Check::ok(
            NAME,
            format!("the weights take {weights}; this system does not tell what is free"),
        );
    };
    let found = format!(
        "weights {weights}, keys and values {}; {} available",
        Size(need.keys_and_values),
        Size(available)
    );
    if need.weights > available {
        return Check::fail(
            NAME,
            found,
            "the model does not fit: free memory, raise the limit of the container, or take a smaller quantisation",
        );
    }
    if need.weights.saturating_add(need.keys_and_values) > available {
        return Check::warn(
            NAME,
            found,
            "it will swap or be killed: lower --kv-memory, --context or --parallel",
        );
    }
    let tokens = format!("{found}: {} tokens", need.kv_tokens);
    if need.kv_tokens < need.context {
        let advice = format!(
            "one context has {}: longer requests are refused; raise --kv-memory or lower --context",
            need.context
        );
        return Check::warn(NAME, tokens, advice);
    }
    if need.kv_tokens < need.context.saturating_mul(need.parallel) {
        let advice = format!(
            "{} full contexts do not fit at once: sequences wait for each other where they grow long; --kv-memory",
            need.parallel
        );
        return Check::ok(NAME, tokens).with_advice(advice);
    }
    Check::ok(NAME, tokens)
}

fn missing(path: &Path, listed: Option<&CatalogModel>) -> Check {
    match listed {
        Some(model) => Check::warn(
            NAME,
            format!("{} is not fetched yet ({})", model.name, Size(model.bytes)),
            format!("assay pull {}; serving fetches it too", model.name),
        ),
        None => Check::fail(
            NAME,
            format!("there is no file {}", path.display()),
            "give the path of a .gguf file, or a name that `assay pull` knows",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn memory_is_held_against_what_is_free() {
        let need = Need {
            weights: 100 * MIB,
            keys_and_values: 50 * MIB,
            kv_tokens: 16_384,
            context: 2_048,
            parallel: 8,
        };
        let few = Need {
            kv_tokens: 4_096,
            ..need
        };
        let short = Need {
            kv_tokens: 1_024,
            ..need
        };
        for (need, available, level, says) in [
            (need, Some(200 * MIB), Level::Ok, None),
            (need, None, Level::Ok, None),
            (few, Some(200 * MIB), Level::Ok, Some("8 full contexts")),
            (short, Some(200 * MIB), Level::Warn, Some("--kv-memory")),
            (need, Some(140 * MIB), Level::Warn, Some("--kv-memory")),
            (need, Some(99 * MIB), Level::Fail, Some("does not fit")),
        ] {
            let check = memory(need, available, &Device::Cpu);
            assert_eq!(check.level, level, "{check:?}");
            let advice = check.advice.as_deref();
            assert_eq!(advice.is_some(), says.is_some(), "{check:?}");
            assert!(
                advice
                    .unwrap_or_default()
                    .contains(says.unwrap_or_default()),
                "{check:?}"
            );
        }
    }
}
