//! Every setting of the binary, from three places: flag, then `ASSAY_*` variable, then configuration file.
//!
//! The only code that reads the environment. What leaves here is complete and checked.

mod device;
mod environment;
mod file;
mod model;
mod serve;
mod store;
#[cfg(test)]
mod tests;

pub(crate) use device::Device;
#[cfg(test)]
pub(crate) use environment::unknown_among;
pub(crate) use environment::{allows_colour, is_dumb_terminal, unknown_variables};
pub(crate) use file::EXAMPLE;
pub(crate) use model::{ModelArgs, ModelConfig, WeightsArgs};
pub(crate) use serve::{LogFormat, ServeArgs, ServeConfig};
pub(crate) use store::StoreArgs;

/// A setting that cannot be honoured, whichever of the three places it is from.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct BadSetting(#[from] anyhow::Error);
