//! Where a model is computed: how it is written, and the device behind it.

use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context, Result};
use assay_kernels::cuda::{Cuda, CudaError};
use serde::Deserialize;

/// `--device`. Changes speed, never a bit.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub(crate) enum Device {
    /// The CPU.
    #[default]
    Cpu,
    /// The CUDA devices of these numbers, which share the layers out in this order; at least one.
    Cuda(Vec<usize>),
    /// The first CUDA device where there is one, the CPU otherwise.
    Auto,
}

impl FromStr for Device {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(vec![0])),
            "auto" => Ok(Self::Auto),
            _ => text
                .strip_prefix("cuda:")
                .and_then(|ordinals| ordinals.split(',').map(|one| one.parse().ok()).collect())
                .map(Self::Cuda)
                .ok_or_else(|| {
                    format!(
                        "{text:?} is none of cpu, cuda, cuda:N, cuda:N,M (several devices) and auto"
                    )
                }),
        }
    }
}

impl TryFrom<String> for Device {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl Device {
    /// The devices, open and tested; none for the CPU.
    ///
    /// # Errors
    /// If a device was asked for and cannot be used. `auto` takes the CPU instead and says why.
    pub(crate) fn open(&self) -> Result<Vec<Arc<Cuda>>> {
        match self {
            Self::Cpu => Ok(Vec::new()),
            Self::Cuda(ordinals) => {
                let open = |&ordinal: &usize| {
                    Cuda::open(ordinal).with_context(|| format!("--device cuda:{ordinal}"))
                };
                ordinals.iter().map(open).collect()
            }
            Self::Auto => match Cuda::open(0) {
                Ok(cuda) => Ok(vec![cuda]),
                Err(error @ (CudaError::NoDriver | CudaError::NoDevice { .. })) => {
                    tracing::info!("--device auto takes the CPU: {error}");
                    Ok(Vec::new())
                }
                Err(error) => {
                    tracing::warn!("--device auto takes the CPU: {error}");
                    Ok(Vec::new())
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings() {
        for (text, device) in [
            ("cpu", Device::Cpu),
            ("cuda", Device::Cuda(vec![0])),
            ("cuda:3", Device::Cuda(vec![3])),
            ("cuda:0,1", Device::Cuda(vec![0, 1])),
            ("auto", Device::Auto),
        ] {
            assert_eq!(text.parse(), Ok(device), "{text}");
        }
        for text in [
            "", "gpu", "cuda:", "cuda:x", "cuda:0,", "cuda:,1", "cuda:-1",
        ] {
            let error = text.parse::<Device>().unwrap_err();
            assert!(error.contains("cuda:N"), "{text}: {error}");
        }
    }

    /// On a machine without a driver the message says what to do; on one with a device it opens.
    #[test]
    fn a_device_that_cannot_be_used_is_named() {
        if let Err(error) = Device::Cuda(vec![0]).open() {
            let text = format!("{error:#}");
            assert!(text.starts_with("--device cuda:0: "), "{text}");
        }
        assert!(Device::Cuda(vec![usize::MAX]).open().is_err());
        assert!(Device::Auto.open().is_ok());
        assert!(Device::Cpu.open().unwrap().is_empty());
    }
}
