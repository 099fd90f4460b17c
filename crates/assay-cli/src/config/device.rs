//! Where a model is computed: how it is written, and the device behind it.

use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context, Result};
use assay_kernels::cuda::{Cuda, CudaError};
use serde::Deserialize;

/// `--device`. Changes speed, never a bit.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub(crate) enum Device {
    /// The CPU.
    #[default]
    Cpu,
    /// The CUDA device of this number.
    Cuda(usize),
    /// The first CUDA device where there is one, the CPU otherwise.
    Auto,
}

impl FromStr for Device {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(0)),
            "auto" => Ok(Self::Auto),
            _ => text
                .strip_prefix("cuda:")
                .and_then(|ordinal| ordinal.parse().ok())
                .map(Self::Cuda)
                .ok_or_else(|| {
                    format!("{text:?} is none of cpu, cuda, cuda:N (one device) and auto")
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
    /// The device, open and tested; `None` for the CPU.
    ///
    /// # Errors
    /// If a device was asked for and cannot be used. `auto` takes the CPU instead and says why.
    pub(crate) fn open(self) -> Result<Option<Arc<Cuda>>> {
        match self {
            Self::Cpu => Ok(None),
            Self::Cuda(ordinal) => {
                let cuda = Cuda::open(ordinal);
                Ok(Some(
                    cuda.with_context(|| format!("--device cuda:{ordinal}"))?,
                ))
            }
            Self::Auto => match Cuda::open(0) {
                Ok(cuda) => Ok(Some(cuda)),
                Err(error @ (CudaError::NoDriver | CudaError::NoDevice { .. })) => {
                    tracing::info!("--device auto takes the CPU: {error}");
                    Ok(None)
                }
                Err(error) => {
                    tracing::warn!("--device auto takes the CPU: {error}");
                    Ok(None)
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
            ("cuda", Device::Cuda(0)),
            ("cuda:3", Device::Cuda(3)),
            ("auto", Device::Auto),
        ] {
            assert_eq!(text.parse(), Ok(device), "{text}");
        }
        for text in ["", "gpu", "cuda:", "cuda:x", "cuda:0,1", "cuda:-1"] {
            let error = text.parse::<Device>().unwrap_err();
            assert!(error.contains("cuda:N"), "{text}: {error}");
        }
    }

    /// On a machine without a driver the message says what to do; on one with a device it opens.
    #[test]
    fn a_device_that_cannot_be_used_is_named() {
        if let Err(error) = Device::Cuda(0).open() {
            let text = format!("{error:#}");
            assert!(text.starts_with("--device cuda:0: "), "{text}");
        }
        assert!(Device::Cuda(usize::MAX).open().is_err());
        assert!(Device::Auto.open().is_ok());
        assert!(Device::Cpu.open().unwrap().is_none());
    }
}
