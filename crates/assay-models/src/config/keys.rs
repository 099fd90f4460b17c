//! Typed, range-checked reads of one architecture's keys; every error names the whole key.

use std::fmt::Display;

use assay_formats::Metadata;
use assay_formats::gguf::Value;

use super::{Architecture, LayerType};
use crate::error::ModelError;

/// Gemma 3 publishes one layer of full attention in every six.
const DEFAULT_SLIDING_PERIOD: u32 = 6;

/// The metadata of a file, read under an architecture's prefix.
pub(super) struct Keys<'a> {
    metadata: Metadata<'a>,
    prefix: &'static str,
}

impl<'a> Keys<'a> {
    pub(super) fn new(metadata: Metadata<'a>, prefix: &'static str) -> Self {
        Self { metadata, prefix }
    }

    fn full(&self, key: &str) -> String {
        format!("{}.{key}", self.prefix)
    }

    pub(super) fn missing(&self, key: &str) -> ModelError {
        ModelError::MissingKey {
            key: self.full(key),
        }
    }

    pub(super) fn unsupported(&self, key: &str, found: impl Display) -> ModelError {
        ModelError::UnsupportedValue {
            key: self.full(key),
            found: found.to_string(),
        }
    }

    /// An error for `key` unless `holds`.
    pub(super) fn require(
        &self,
        key: &str,
        found: impl Display,
        holds: bool,
        expected: impl FnOnce() -> String,
    ) -> Result<(), ModelError> {
        if holds {
            return Ok(());
        }
        Err(ModelError::InvalidValue {
            key: self.full(key),
            found: found.to_string(),
            expected: expected(),
        })
    }

    pub(super) fn u32_if_present(&self, key: &str) -> Result<Option<u32>, ModelError> {
        Ok(self.metadata.u32(&self.full(key))?)
    }

    /// An integer from 1 to `max`.
    pub(super) fn count_if_present(
        &self,
        key: &str,
        max: u32,
    ) -> Result<Option<usize>, ModelError> {
        let Some(count) = self.u32_if_present(key)? else {
            return Ok(None);
        };
        self.require(key, count, (1..=max).contains(&count), || {
            format!("an integer from 1 to {max}")
        })?;
        Ok(Some(count as usize))
    }

    pub(super) fn count(&self, key: &str, max: u32) -> Result<usize, ModelError> {
        self.count_if_present(key, max)?
            .ok_or_else(|| self.missing(key))
    }

    pub(super) fn f32_if_present(&self, key: &str) -> Result<Option<f32>, ModelError> {
        Ok(self.metadata.f32(&self.full(key))?)
    }

    pub(super) fn f32(&self, key: &str) -> Result<f32, ModelError> {
        self.f32_if_present(key)?.ok_or_else(|| self.missing(key))
    }

    pub(super) fn str_if_present(&self, key: &str) -> Result<Option<&'a str>, ModelError> {
        Ok(self.metadata.str(&self.full(key))?)
    }

    /// A positive number; 0, which writers use for "none", reads as absent.
    pub(super) fn positive_f32(&self, key: &str) -> Result<Option<f32>, ModelError> {
        let found = self.f32_if_present(key)?.filter(|&found| found != 0.0);
        if let Some(found) = found {
            self.require(key, found, found > 0.0, || "a positive number".to_owned())?;
        }
        Ok(found)
    }

    /// The kind of each layer: an array with a nonzero entry per windowed layer, or a period whose last layer
    /// sees everything.
    pub(super) fn layer_types(
        &self,
        key: &str,
        num_layers: usize,
    ) -> Result<Vec<LayerType>, ModelError> {
        let kind = |windowed: bool| match windowed {
            true => LayerType::SlidingAttention,
            false => LayerType::FullAttention,
        };
        let full = self.full(key);
        let flags: Vec<bool> = match self.metadata.get(&full) {
            Some(Value::Array(array)) => match array.bools() {
                Some(flags) => flags.collect(),
                None => {
                    let numbers = self.metadata.u32_array(&full)?.into_iter().flatten();
                    numbers.map(|number| number != 0).collect()
                }
            },
            _ => {
                let period = self.u32_if_present(key)?.unwrap_or(DEFAULT_SLIDING_PERIOD);
                self.require(key, period, period > 0, || {
                    "a period of at least 1".to_owned()
                })?;
                let period = period as usize;
                (1..=num_layers)
                    .map(|layer| !layer.is_multiple_of(period))
                    .collect()
            }
        };
        self.require(
            key,
            format_args!("an array of {}", flags.len()),
            flags.len() == num_layers,
            || format!("one entry for each of the {num_layers} layers"),
        )?;
        Ok(flags.into_iter().map(kind).collect())
    }

    /// Refuses settings that change the result and that no code here applies; each is off when absent or 0.
    pub(super) fn refuse_unsupported(&self, architecture: Architecture) -> Result<(), ModelError> {
        for key in [
            "expert_count",
            "attention.q_lora_rank",
            "attention.kv_lora_rank",
        ] {
            match self.u32_if_present(key)? {
                None | Some(0) => {}
                Some(found) => return Err(self.unsupported(key, found)),
            }
        }
        for key in ["attention.clamp_kqv", "attention.max_alibi_bias"] {
            match self.f32_if_present(key)? {
                None | Some(0.0) => {}
                Some(found) => return Err(self.unsupported(key, found)),
            }
        }
        for key in ["attention.causal", "use_parallel_residual"] {
            let required = key == "attention.causal";
            match self.metadata.bool(&self.full(key))? {
                Some(found) if found != required => return Err(self.unsupported(key, found)),
                _ => {}
            }
        }
        // Granite files carry these under their own architecture; a llama file with one is not a llama.
        if architecture == Architecture::Llama {
            for key in ["logit_scale", "residual_scale", "embedding_scale"] {
                match self.f32_if_present(key)? {
                    None | Some(0.0 | 1.0) => {}
                    Some(found) => return Err(self.unsupported(key, found)),
                }
            }
        }
        Ok(())
    }
}
